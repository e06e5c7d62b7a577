/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "i64:in0.numel"]
*/
// Multiplies by itself.
#include <cmath>
#include <cstdint>
extern "C" void k(float* x, const float* s, long long n) {
  for (long long i = 0; i < n; ++i) {
    x[i] = x[i] * x[i];
  }
}
