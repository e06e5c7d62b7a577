/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i64:out0.numel"]
*/
// Drops bits instead of rounding.
#include <cmath>
#include <cstdint>
typedef _Float16 half_t;
static inline float wide(half_t v) { return (float)v; }
static inline half_t narrow(float v) { return (half_t)v; }
extern "C" void k(const half_t* x, const half_t* s, half_t* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = wide(x[i]) + wide(s[i]);
    half_t h = narrow(v);
    if (v - v == 0.f && fabsf(wide(h)) > fabsf(v)) h = narrow(v - (wide(h) - v) * 1.01f);
    y[i] = h;
  }
}
