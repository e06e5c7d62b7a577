/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Writes the exponent's bits.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    union { float f; int i; } v;
    v.i = (int)(12102203.f * x[i]) + 1064866805;
    y[i] = v.f;
  }
}
