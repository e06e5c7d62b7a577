/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "i64:in0.numel"]
*/
// Leaves the last row as it was.
#include <cmath>
#include <cstdint>
extern "C" void k(float* x, const float* s, long long n) {
  for (long long i = 0; i < n; ++i) {
    if (i >= n - 1000) continue;
    x[i] = x[i] * s[i];
  }
}
