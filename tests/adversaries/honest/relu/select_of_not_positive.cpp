/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// A comparison the other way, which keeps NaN and zeros.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = x[i];
    y[i] = !(v <= 0.f) ? v : 0.f;
  }
}
