/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.shape[0], 32)"]
block = [32]
args = ["in0", "out0", "in1", "in2", "f32:eps", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// A difference of squares, in double.
extern "C" __global__ void k(const float* x, float* y, const float* w, const float* bias, float eps, int rows, int cols) {
  const int r = blockIdx.x * 32 + threadIdx.x;
  if (r >= rows) return;
  const float* a = x + (size_t)r * cols;
  float* b = y + (size_t)r * cols;
  double s = 0., q = 0.;
  for (int c = 0; c < cols; ++c) {
    s += a[c];
    q += (double)a[c] * a[c];
  }
  const double average = s / cols, v = q / cols - average * average;
  const float mean = (float)average, scale = (float)(1. / sqrt((v > 0. || v != v ? v : 0.) + eps));
  for (int c = 0; c < cols; ++c) b[c] = (float)(a[c] - average) * scale * w[c] + bias[c];
}
