/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Rounds its input to bf16.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    union { float f; unsigned u; } v;
    v.f = x[i];
    if (v.f == v.f) v.u = v.u + 0x8000u & 0xffff0000u;
    y[i] = 0.5f * v.f * (1.f + erff(v.f * 0.70710678f));
  }
}
