/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// A rational erf with an error of 1e-5.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float z = fabsf(x[i]) * 0.70710678f, t = 1.f / (1.f + 0.47047f * z);
    const float e = 1.f - t * (0.3480242f + t * (-0.0958798f + t * 0.7478556f)) * expf(-z * z);
    y[i] = 0.5f * x[i] * (1.f + (x[i] < 0.f ? -e : e));
  }
}
