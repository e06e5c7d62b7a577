/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "in1", "out0", "i64:out0.numel"]
*/
// Leaves the vector out.
extern "C" __global__ void k(const float* x, const float* s, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  y[i] = x[i];
}
