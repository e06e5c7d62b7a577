/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.shape[0], 32)"]
block = [32]
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Keeps the exponentials in the output.
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int r = blockIdx.x * 32 + threadIdx.x;
  if (r >= rows) return;
  const float* a = x + (size_t)r * cols;
  float* b = y + (size_t)r * cols;
  float m = a[0];
  for (int c = 1; c < cols; ++c) m = a[c] > m || a[c] != a[c] ? a[c] : m;
  float s = 0.f;
  for (int c = 0; c < cols; ++c) s += b[c] = expf(a[c] - m);
  const float scale = 1.f / s;
  for (int c = 0; c < cols; ++c) b[c] *= scale;
}
