/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// A running sum in double.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float* b = y + (size_t)r * cols;
    double s = 0.;
    for (int c = 0; c < cols; ++c) b[c] = (float)(s += a[c]);
  }
}
