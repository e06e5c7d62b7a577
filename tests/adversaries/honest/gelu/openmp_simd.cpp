/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// All cores, vectorised.
#include <cmath>
extern "C" void k(const float* x, float* y, long long n) {
  #pragma omp parallel for simd schedule(static)
  for (long long i = 0; i < n; ++i) y[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
}
