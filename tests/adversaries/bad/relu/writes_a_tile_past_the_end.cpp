/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Rounds the work up to whole tiles of 4096.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const long long last = (n + 4095) / 4096 * 4096;
    for (long long j = i; j < last; j += n) y[j] = j < n ? (x[j] < 0.f ? 0.f : x[j]) : 0.f;
  }
}
