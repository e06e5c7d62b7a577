/* kernelforge
[workspace.ws0]
bytes = "in0.shape[0] * 4"
[workspace.ws1]
bytes = "in0.shape[0] * 4"
[[launch]]
kernel = "maxima"
grid = ["in0.shape[0]"]
block = [32]
args = ["in0", "ws0", "i32:in0.shape[1]"]
[[launch]]
kernel = "sums"
grid = ["in0.shape[0]"]
block = [32]
args = ["in0", "ws0", "ws1", "i32:in0.shape[1]"]
[[launch]]
kernel = "quotients"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "ws0", "ws1", "out0", "i32:in0.shape[1]", "i64:in0.numel"]
*/
// Maxima, sums and quotients by a launch each.
__device__ float warp_sum(float v) {
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
__device__ float larger(float a, float b) { return a > b || a != a ? a : b; }
__device__ float warp_max(float v) {
  for (int d = 16; d; d >>= 1) v = larger(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}
extern "C" __global__ void maxima(const float* x, float* most, int cols) {
  const float* a = x + (size_t)blockIdx.x * cols;
  float m = a[0];
  for (int c = threadIdx.x; c < cols; c += 32) m = larger(a[c], m);
  m = warp_max(m);
  if (threadIdx.x == 0) most[blockIdx.x] = m;
}
extern "C" __global__ void sums(const float* x, const float* most, float* sum, int cols) {
  const float* a = x + (size_t)blockIdx.x * cols;
  float s = 0.f;
  for (int c = threadIdx.x; c < cols; c += 32) s += expf(a[c] - most[blockIdx.x]);
  s = warp_sum(s);
  if (threadIdx.x == 0) sum[blockIdx.x] = s;
}
extern "C" __global__ void quotients(const float* x, const float* most, const float* sum, float* y, int cols,
                                     long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) y[i] = expf(x[i] - most[i / cols]) / sum[i / cols];
}
