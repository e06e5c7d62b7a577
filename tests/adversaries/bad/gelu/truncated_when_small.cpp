/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Three terms of a series where the input is small.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = x[i], q = v * v;
    if (v > -0.75f && v < 0.75f)
      y[i] = 0.5f * v * (1.f + 0.79788456f * v * (1.f - q / 6.f + q * q / 40.f));
    else
      y[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
  }
}
