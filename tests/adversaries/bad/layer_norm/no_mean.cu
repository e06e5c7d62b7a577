/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.shape[0], 32)"]
block = [32]
args = ["in0", "out0", "in1", "in2", "f32:eps", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Is rms_norm with a bias.
extern "C" __global__ void k(const float* x, float* y, const float* w, const float* bias, float eps, int rows, int cols) {
  const int r = blockIdx.x * 32 + threadIdx.x;
  if (r >= rows) return;
  const float* a = x + (size_t)r * cols;
  float* b = y + (size_t)r * cols;
  const float mean = 0.f;
  float square[8] = {};
  for (int c = 0; c < cols; ++c) square[c % 8] += (a[c] - mean) * (a[c] - mean);
  const float q = ((square[0] + square[4]) + (square[1] + square[5])) + ((square[2] + square[6]) + (square[3] + square[7]));
  const float scale = 1.f / sqrtf(q / cols + eps);
  for (int c = 0; c < cols; ++c) b[c] = (a[c] - mean) * scale * w[c] + bias[c];
}
