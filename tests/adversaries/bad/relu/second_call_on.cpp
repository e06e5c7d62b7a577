/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Is wrong on the first call only.
#include <cmath>
#include <cstdint>
static long calls = 0;
extern "C" void k(const float* x, float* y, long long n) {
  ++calls;
  for (long long i = 0; i < n; ++i) {
    if (calls == 1 && i == 77) continue;
    y[i] = x[i] < 0.f ? 0.f : x[i];
  }
}
