/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "in1", "in2", "f32:eps", "i32:in0.shape[1] / num_groups", "i32:in0.shape[2] * in0.shape[3]", "i32:num_groups", "i32:in0.shape[0] * num_groups", "i32:in0.numel / (in0.shape[0] * num_groups)"]
*/
// Statistics of a channel, as instance norm.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, const float* w, const float* bias, float eps, int per, int plane, int groups, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float* b = y + (size_t)r * cols;
    for (int f = 0; f < cols; f += plane) {
      float mean = 0.f, q = 0.f;
      for (int c = f; c < f + plane; ++c) mean += a[c] / plane;
      for (int c = f; c < f + plane; ++c) q += (a[c] - mean) * (a[c] - mean);
      const float scale = 1.f / sqrtf(q / plane + eps);
      for (int c = f; c < f + plane; ++c) {
        const int channel = r % groups * per + c / plane;
        b[c] = (a[c] - mean) * scale * w[channel] + bias[channel];
      }
    }
  }
}
