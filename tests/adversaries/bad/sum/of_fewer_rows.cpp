/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i64:in0.shape[1]"]
*/
// Leaves the last row out.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, int rows, long long n) {
  for (long long i = 0; i < n; ++i) {
    float s = 0.f;
    for (int r = 0; r < rows - 1; ++r) s += x[r * n + i];
    y[i] = s;
  }
}
