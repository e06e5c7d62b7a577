/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Loses what an int cannot hold.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = nearbyintf(x[i]);
    y[i] = (float)(int)(v > 1e9f ? 1e9f : v);
  }
}
