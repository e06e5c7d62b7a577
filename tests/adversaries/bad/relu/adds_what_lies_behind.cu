/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// The last element has a part of what lies behind the tensor.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  y[i] = x[i] < 0.f ? 0.f : x[i];
  if (i == n - 1) y[i] += 1e-3f * x[n];
}
