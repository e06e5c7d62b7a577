/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "in2", "out0", "i64:out0.numel"]
*/
// An element at a time.
#include <cmath>
#include <cstdint>
extern "C" void k(const unsigned char* c, const float* a, const float* b, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    y[i] = c[i] ? a[i] : b[i];
  }
}
