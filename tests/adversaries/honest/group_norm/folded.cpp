/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "in1", "in2", "f32:eps", "i32:in0.shape[1] / num_groups", "i32:in0.shape[2] * in0.shape[3]", "i32:num_groups", "i32:in0.shape[0] * num_groups", "i32:in0.numel / (in0.shape[0] * num_groups)"]
*/
// Weight and bias folded into one factor and one term.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, const float* w, const float* bias, float eps, int per, int plane, int groups, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float* b = y + (size_t)r * cols;
    float mean = 0.f, q = 0.f;
    for (int c = 0; c < cols; ++c) mean += a[c];
    mean /= cols;
    for (int c = 0; c < cols; ++c) q += (a[c] - mean) * (a[c] - mean);
    const float scale = 1.f / sqrtf(q / cols + eps);
    for (int f = 0; f < cols; f += plane) {
      const int channel = r % groups * per + f / plane;
      const float t = scale * w[channel], u = bias[channel] - mean * t;
      for (int c = f; c < f + plane; ++c) b[c] = fmaf(a[c], t, u);
    }
  }
}
