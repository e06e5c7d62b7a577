/* kernelforge
[[launch]]
kernel = "normalise<double>"
args = ["in0", "in1", "in2", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]", "f32:eps"]
*/
// A template over the accumulator.
#include <cmath>
template <class Sum>
void normalise(const float* x, const float* w, const float* bias, float* y, int rows, int cols, float eps) {
  for (int r = 0; r < rows; ++r, x += cols, y += cols) {
    Sum mean = 0, square = 0;
    for (int c = 0; c < cols; ++c) mean += x[c];
    mean /= cols;
    for (int c = 0; c < cols; ++c) square += (x[c] - mean) * (x[c] - mean);
    const Sum scale = 1 / std::sqrt(square / cols + eps);
    for (int c = 0; c < cols; ++c) y[c] = float((x[c] - mean) * scale * w[c] + bias[c]);
  }
}
