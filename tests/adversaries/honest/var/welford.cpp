/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Welford's update.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float mean = 0.f, q = 0.f;
    for (int c = 0; c < cols; ++c) {
      const float d = a[c] - mean;
      mean += d / (c + 1);
      q += d * (a[c] - mean);
    }
    y[r] = q / (cols - 1);
  }
}
