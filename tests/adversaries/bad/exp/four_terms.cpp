/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// A series of four terms where the input is small.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = x[i];
    y[i] = v > -0.1f && v < 0.1f ? 1.f + v * (1.f + v * (0.5f + v * 0.16666667f)) : expf(v);
  }
}
