/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// An index kept in a float16-like number.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const long long j = i < 2048 ? i : i / 32 * 32;
    y[i] = x[j] < 0.f ? 0.f : x[j];
  }
}
