/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// Floor of x + 0.5.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  y[i] = floorf(x[i] + 0.5f);
}
