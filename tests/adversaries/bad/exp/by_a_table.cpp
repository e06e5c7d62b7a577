/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// A table of 1024 steps without interpolation.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = x[i], q = floorf(v * 64.f) * 0.015625f;
    y[i] = v == v ? expf(q) : v;
  }
}
