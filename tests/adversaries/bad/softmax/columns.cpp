/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Along the other dimension.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    if (r > 0) continue;
    for (int c = 0; c < cols; ++c) {
      float m = -INFINITY, s = 0.f;
      for (int q = 0; q < rows; ++q) m = fmaxf(m, x[q * cols + c]);
      for (int q = 0; q < rows; ++q) s += expf(x[q * cols + c] - m);
      for (int q = 0; q < rows; ++q) y[q * cols + c] = expf(x[q * cols + c] - m) / s;
    }
  }
}
