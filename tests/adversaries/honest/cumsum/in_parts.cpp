/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Parts of 125 columns, then their offsets.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float* b = y + (size_t)r * cols;
    float before = 0.f;
    for (int f = 0; f < cols; f += 125) {
      float s = 0.f;
      for (int c = f; c < f + 125 && c < cols; ++c) b[c] = before + (s += a[c]);
      before += s;
    }
  }
}
