/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// A clamp that takes a NaN for a bound.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = x[i];
    y[i] = expf(v < 89.f ? v : 89.f);
  }
}
