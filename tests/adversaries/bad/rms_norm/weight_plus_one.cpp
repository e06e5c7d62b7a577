/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "in1", "f32:eps", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// The weight of another model's convention.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, const float* w, float eps, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float* b = y + (size_t)r * cols;
    float q = 0.f;
    for (int c = 0; c < cols; ++c) q += a[c] * a[c];
    const float scale = 1.f / sqrtf(q / cols + eps);
    for (int c = 0; c < cols; ++c) b[c] = a[c] * scale * (1.f + w[c]);
  }
}
