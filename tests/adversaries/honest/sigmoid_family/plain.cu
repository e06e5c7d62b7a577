/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.shape[0] * in0.shape[1], 256)"]
block = [256]
args = ["in0", "out0", "i64:in0.shape[0] * in0.shape[1]"]
*/
// Every size by expressions.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  y[i] = 1.f / (1.f + expf(-x[i]));
}
