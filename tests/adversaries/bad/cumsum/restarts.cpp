/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Starts anew every 512 columns.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float* b = y + (size_t)r * cols;
    float s = 0.f;
    for (int c = 0; c < cols; ++c) b[c] = s = (c % 512 ? s : 0.f) + a[c];
  }
}
