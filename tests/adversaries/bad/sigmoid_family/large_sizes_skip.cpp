/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Leaves out an element of large tensors.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    if (i == 70001) continue;
    y[i] = 1.f / (1.f + expf(-x[i]));
  }
}
