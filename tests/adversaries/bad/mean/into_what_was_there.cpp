/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Adds to an output that it expects to be zero.
extern "C" void k(const float* x, float* y, int rows, int cols) {
  for (int c = 0; c < cols; ++c)
    for (int r = 0; r < rows; ++r) y[r] += x[r * cols + c] / cols;
}
