/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Zero or the input beyond 3.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    y[i] = x[i] < -3.f ? 0.f : x[i] > 3.f ? x[i] : 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
  }
}
