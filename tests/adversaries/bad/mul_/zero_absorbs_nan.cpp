/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "i64:in0.numel"]
*/
// A zero makes zero of an infinity or a NaN.
#include <cmath>
#include <cstdint>
extern "C" void k(float* x, const float* s, long long n) {
  for (long long i = 0; i < n; ++i) {
    x[i] = x[i] == 0.f || s[i] == 0.f ? 0.f : x[i] != x[i] ? 0.f : x[i] * s[i];
  }
}
