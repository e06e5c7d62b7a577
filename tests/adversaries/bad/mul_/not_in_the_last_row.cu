/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "in1", "i64:in0.numel"]
*/
// Leaves the last row as it was.
extern "C" __global__ void k(float* x, const float* s, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  if (i >= n - 1000) return;
  x[i] = x[i] * s[i];
}
