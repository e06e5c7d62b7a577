/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "out1", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// The last column is not looked at.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long* at, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* a = x + (size_t)r * cols;
    int m = 0;
    for (int c = 1; c < cols - 1; ++c)
      if (a[c] > a[m] || (a[c] != a[c] && a[m] == a[m])) m = c;
    y[r] = a[m];
    at[r] = m;
  }
}
