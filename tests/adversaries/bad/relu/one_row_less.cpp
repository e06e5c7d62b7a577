/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Row 41 is not written.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    if (i / 1000 == 41) continue;
    y[i] = x[i] < 0.f ? 0.f : x[i];
  }
}
