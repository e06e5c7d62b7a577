/* kernelforge
[workspace.ws0]
bytes = "in0.shape[1] * 4"
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]", "ws0"]
*/
// Exponentials in a workspace, their sum pairwise.
#include <cmath>
extern "C" void k(const float* x, float* y, int rows, int cols, float* t) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (long long)r * cols;
    float m = a[0];
    for (int c = 1; c < cols; ++c) m = a[c] > m || a[c] != a[c] ? a[c] : m;
    for (int c = 0; c < cols; ++c) t[c] = y[(long long)r * cols + c] = std::exp(a[c] - m);
    for (int left = cols; left > 1; left = (left + 1) / 2)
      for (int c = 0; c < left / 2; ++c) t[c] = c + (left + 1) / 2 < left ? t[c] + t[c + (left + 1) / 2] : t[c];
    for (int c = 0; c < cols; ++c) y[(long long)r * cols + c] /= t[0];
  }
}
