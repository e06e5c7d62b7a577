/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Floor of x + 0.5.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    y[i] = floorf(x[i] + 0.5f);
  }
}
