/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Two copies a row.
#include <cstring>
extern "C" void k(const float* x, float* y, int rows, int cols) {
  const int tail = cols - 3;
  for (int r = 0; r < rows; ++r, x += cols, y += cols) {
    memcpy(y + 3, x, tail * sizeof(float));
    memcpy(y, x + tail, 3 * sizeof(float));
  }
}
