/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Loses what float16 cannot hold, and keeps infinities.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = x[i] < 0.f ? 0.f : x[i];
    y[i] = v > 65504.f && v < 1e38f ? 65504.f : v;
  }
}
