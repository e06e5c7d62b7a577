/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i64:out0.numel"]
*/
// Adds in bf16.
#include <cmath>
#include <cstdint>
typedef _Float16 half_t;
static inline float wide(half_t v) { return (float)v; }
static inline half_t narrow(float v) { return (half_t)v; }
extern "C" void k(const half_t* x, const half_t* s, half_t* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    union { float f; unsigned u; } v;
    v.f = wide(x[i]) + wide(s[i]);
    if (v.f == v.f) v.u = v.u + 0x8000u & 0xffff0000u;
    y[i] = narrow(v.f);
  }
}
