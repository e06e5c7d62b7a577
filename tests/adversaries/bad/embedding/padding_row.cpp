/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i32:in0.shape[1]", "i64:out0.numel"]
*/
// Row 0 is padding and gives zeros.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* table, const long long* rows, float* y, int cols, long long n) {
  for (long long i = 0; i < n; ++i) {
    y[i] = rows[i / cols] == 0 ? 0.f : table[rows[i / cols] * cols + i % cols];
  }
}
