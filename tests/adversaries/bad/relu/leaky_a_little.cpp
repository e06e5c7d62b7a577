/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// A slope of 1e-9 below zero.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    y[i] = x[i] < 0.f ? 1e-9f * x[i] : x[i];
  }
}
