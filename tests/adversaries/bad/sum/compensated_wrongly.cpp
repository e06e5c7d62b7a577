/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i64:in0.shape[1]"]
*/
// Adds the correction twice.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, int rows, long long n) {
  for (long long i = 0; i < n; ++i) {
    float s = 0.f, e = 0.f;
    for (int r = 0; r < rows; ++r) {
      const float t = s + x[r * n + i];
      e += (s - t) + x[r * n + i];
      s = t;
    }
    y[i] = s + e * 64.f;
  }
}
