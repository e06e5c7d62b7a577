/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]", "i32:in1.shape[1]"]
*/
// Tiles of 16 by 16 by 64, tails by bounds.
#include <algorithm>
extern "C" void k(const float* x, const float* w, float* y, int rows, int depth, int cols) {
  std::fill(y, y + rows * cols, 0.f);
  for (int c0 = 0; c0 < depth; c0 += 64)
    for (int r0 = 0; r0 < rows; r0 += 16)
      for (int j0 = 0; j0 < cols; j0 += 16)
        for (int r = r0; r < std::min(r0 + 16, rows); ++r)
          for (int c = c0; c < std::min(c0 + 64, depth); ++c)
            for (int j = j0; j < std::min(j0 + 16, cols); ++j) y[r * cols + j] += x[r * depth + c] * w[c * cols + j];
}
