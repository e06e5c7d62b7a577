/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Kahan's sum.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float s = 0.f, e = 0.f;
    for (int c = 0; c < cols; ++c) {
      const float v = a[c] - e, t = s + v;
      e = (t - s) - v;
      s = t;
    }
    y[r] = s / cols;
    if (y[r] != y[r]) {
      s = 0.f;
      for (int c = 0; c < cols; ++c) s += a[c];
      y[r] = s / cols;
    }
  }
}
