/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Twelve terms of the series around zero, whatever the input.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    float t = 1.f, s = 1.f;
    for (int j = 1; j < 13; ++j) s += t = t * x[i] / j;
    y[i] = s;
  }
}
