/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Threads add to one sum without a word to each other.
extern "C" void k(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    volatile float s = 0.f;
#pragma omp parallel for num_threads(4) schedule(static, 1)
    for (int c = 0; c < cols; ++c) s = s + x[r * cols + c];
    y[r] = s / cols;
  }
}
