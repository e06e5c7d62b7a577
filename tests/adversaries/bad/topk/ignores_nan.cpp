/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "out1", "i32:k", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// A NaN is never among them.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long* at, int k, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    float* b = y + (size_t)r * k;
    for (int j = 0; j < k; ++j) {
      int m = -1;
      for (int c = 0; c < cols; ++c) {
        bool taken = false;
        for (int q = 0; q < j; ++q) taken = taken || at[r * k + q] == c;
        if (!taken && a[c] == a[c] && (m < 0 || a[c] > a[m])) m = c;
      }
      b[j] = a[m];
      at[r * k + j] = m;
    }
  }
}
