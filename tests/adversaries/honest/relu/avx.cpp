/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Vectors of eight, and a tail.
#include <immintrin.h>
extern "C" void k(const float* x, float* y, long long n) {
  long long i = 0;
  #ifdef __AVX__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, _mm256_max_ps(_mm256_setzero_ps(), _mm256_loadu_ps(x + i)));
  #endif
  for (; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
