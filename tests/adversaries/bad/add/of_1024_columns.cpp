/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i64:out0.numel"]
*/
// A column index for a row of 1024.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, const float* s, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    y[i] = x[i] + s[i % 1024 % 1000];
  }
}
