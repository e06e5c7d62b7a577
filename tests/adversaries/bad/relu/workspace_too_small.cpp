/* kernelforge
[workspace.ws0]
bytes = "in0.numel * 4 - 4"
[[launch]]
kernel = "k"
args = ["in0", "out0", "ws0", "i64:out0.numel"]
*/
// Writes behind its workspace.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, float* ws, long long n) {
  for (long long i = 0; i < n; ++i) {
    ws[i] = x[i];
    y[i] = ws[i] < 0.f ? 0.f : ws[i];
  }
}
