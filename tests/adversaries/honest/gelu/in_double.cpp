/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// In double.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const double v = x[i];
    y[i] = (float)(0.5 * v * (1.0 + erf(v * 0.7071067811865476)));
  }
}
