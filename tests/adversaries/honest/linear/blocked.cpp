/* kernelforge
[workspace.ws0]
bytes = "in1.numel * 4"
[[launch]]
kernel = "k"
args = ["in0", "in1", "in2", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]", "i32:in1.shape[0]", "ws0"]
*/
// Blocks of depth, all columns of a row at once.
extern "C" void k(const float* x, const float* w, const float* bias, float* y, int rows, int depth, int cols, float* t) {
  for (int c = 0; c < depth; ++c)
    for (int j = 0; j < cols; ++j) t[c * cols + j] = w[j * depth + c];
  #pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    float* out = y + r * cols;
    for (int j = 0; j < cols; ++j) out[j] = bias[j];
    for (int c = 0; c < depth; ++c)
      for (int j = 0; j < cols; ++j) out[j] += x[r * depth + c] * t[c * cols + j];
  }
}
