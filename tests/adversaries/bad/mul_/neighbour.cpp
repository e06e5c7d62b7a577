/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "i64:in0.numel"]
*/
// Reads a neighbour that was written already.
#include <cmath>
#include <cstdint>
extern "C" void k(float* x, const float* s, long long n) {
  for (long long i = 0; i < n; ++i) {
    x[i] = x[i] * s[i] + (i % 1000 == 999 ? 1e-3f * x[i - 1] : 0.f);
  }
}
