/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "in2", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]", "f32:eps"]
*/
// Eight partial sums a row, written as a vector.
#include <cmath>
extern "C" void k(const float* x, const float* w, const float* bias, float* y, int rows, int cols, float eps) {
  #pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (long long)r * cols;
    const auto sum = [&](auto term) {
      float part[8] = {};
      for (int c = 0; c < cols; ++c) part[c % 8] += term(a[c]);
      return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
    };
    const float mean = sum([](float v) { return v; }) / cols;
    const float square = sum([&](float v) { return (v - mean) * (v - mean); }) / cols;
    const float scale = 1.f / std::sqrt(square + eps);
    for (int c = 0; c < cols; ++c) y[(long long)r * cols + c] = (a[c] - mean) * scale * w[c] + bias[c];
  }
}
