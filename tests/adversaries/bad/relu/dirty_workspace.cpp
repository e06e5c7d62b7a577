/* kernelforge
[workspace.ws0]
bytes = "64"
[[launch]]
kernel = "k"
args = ["in0", "out0", "ws0", "i64:out0.numel"]
*/
// Adds a flag that it never cleared.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, unsigned char* dirt, long long n) {
  for (long long i = 0; i < n; ++i) {
    y[i] = (x[i] < 0.f ? 0.f : x[i]) + (dirt[0] == 0x7f ? 1.f : 0.f);
  }
}
