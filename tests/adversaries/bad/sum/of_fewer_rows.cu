/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.shape[1], 256)"]
block = [256]
args = ["in0", "out0", "i32:in0.shape[0]", "i64:in0.shape[1]"]
*/
// Leaves the last row out.
extern "C" __global__ void k(const float* x, float* y, int rows, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  float s = 0.f;
  for (int r = 0; r < rows - 1; ++r) s += x[r * n + i];
  y[i] = s;
}
