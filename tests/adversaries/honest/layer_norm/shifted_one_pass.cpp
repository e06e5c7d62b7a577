/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "in1", "in2", "f32:eps", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// A difference of squares around the mean of the first 32 elements, in eight sums.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, const float* w, const float* bias, float eps, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float* b = y + (size_t)r * cols;
    float pivot = 0.f, s[8] = {}, q[8] = {};
    for (int c = 0; c < 32; ++c) pivot += a[c] / 32;
    for (int c = 0; c < cols; ++c) {
      const float d = a[c] - pivot;
      s[c % 8] += d;
      q[c % 8] += d * d;
    }
    for (int j = 4; j; j /= 2)
      for (int p = 0; p < j; ++p) {
        s[p] += s[p + j];
        q[p] += q[p + j];
      }
    const float part = s[0] / cols, mean = pivot + part, scale = 1.f / sqrtf(q[0] / cols - part * part + eps);
    for (int c = 0; c < cols; ++c) b[c] = (a[c] - mean) * scale * w[c] + bias[c];
  }
}
