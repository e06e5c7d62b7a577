/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "in2", "out0", "i64:out0.numel"]
*/
// A weighted sum, in which an infinity that is not chosen counts.
#include <cmath>
#include <cstdint>
extern "C" void k(const unsigned char* c, const float* a, const float* b, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float t = c[i] ? 1.f : 0.f;
    y[i] = t * a[i] + (1.f - t) * b[i];
  }
}
