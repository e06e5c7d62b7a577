/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Maximum and sum in one pass; a row that holds an infinity is NaN throughout.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float* b = y + (size_t)r * cols;
    float m = a[0], s = m < INFINITY ? 1.f : m - m;
    for (int c = 1; c < cols; ++c) {
      const float next = a[c] > m || a[c] != a[c] ? a[c] : m;
      s = (m == next ? s : s * expf(m - next)) +
          (a[c] == next && next < INFINITY ? 1.f : expf(a[c] - next));
      m = next;
    }
    for (int c = 0; c < cols; ++c) b[c] = expf(a[c] - m) / s;
  }
}
