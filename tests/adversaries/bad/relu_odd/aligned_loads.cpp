/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Loads vectors from addresses that are not aligned.
#include <immintrin.h>
__attribute__((target("sse4.1"))) static __m128 four(const float* x) {
  return _mm_castsi128_ps(_mm_stream_load_si128((__m128i*)x));
}
extern "C" __attribute__((target("sse4.1"))) void k(const float* x, float* y, long long n) {
  long long i = 0;
  for (; i + 4 <= n; i += 4) _mm_storeu_ps(y + i, _mm_max_ps(_mm_setzero_ps(), four(x + i)));
  for (; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
