/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "in1", "i64:in0.numel"]
*/
// Reads a neighbour that was written already.
extern "C" __global__ void k(float* x, const float* s, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  x[i] = x[i] * s[i] + (i % 1000 == 999 ? 1e-3f * x[i - 1] : 0.f);
}
