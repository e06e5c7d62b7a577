/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Keeps twenty bits of the mantissa.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    union { float f; unsigned u; } v;
    v.f = x[i] < 0.f ? 0.f : x[i];
    if (v.f == v.f) v.u &= ~7u;
    y[i] = v.f;
  }
}
