/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i64:in1.numel", "i64:in0.shape[1]"]
*/
// A row at a time.
#include <cstdint>
#include <cstring>
extern "C" void k(const float* table, const int64_t* rows, float* y, int64_t count, int64_t cols) {
  for (int64_t r = 0; r < count; ++r) memcpy(y + r * cols, table + rows[r] * cols, cols * sizeof(float));
}
