/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// An index that wraps at 65536.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const unsigned short j = (unsigned short)i;
    y[j] = x[j] < 0.f ? 0.f : x[j];
  }
}
