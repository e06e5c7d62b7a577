/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "out1", "i32:k", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Keeps the best sorted.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long* at, int k, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float* b = y + (size_t)r * k;
    int count = 0;
    for (int c = 0; c < cols; ++c) {
      int p = count < k ? count++ : k;
      while (p > 0) {
        const float other = a[at[r * k + p - 1]];
        if (!(a[c] > other || (a[c] != a[c] && other == other))) break;
        if (p < k) at[r * k + p] = at[r * k + p - 1];
        --p;
      }
      if (p < k) at[r * k + p] = c;
    }
    for (int j = 0; j < k; ++j) b[j] = a[at[r * k + j]];
  }
}
