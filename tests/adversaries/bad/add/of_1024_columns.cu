/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "in1", "out0", "i64:out0.numel"]
*/
// A column index for a row of 1024.
extern "C" __global__ void k(const float* x, const float* s, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  y[i] = x[i] + s[i % 1024 % 1000];
}
