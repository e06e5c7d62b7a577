/* kernelforge
[workspace.ws0]
bytes = "in0.shape[0] * 16"
[workspace.ws1]
bytes = "in0.shape[0] * 4"
init = "zero"
[[launch]]
kernel = "k"
grid = ["in0.shape[0]", 4]
block = [32]
args = ["in0", "out0", "ws0", "ws1", "i32:in0.shape[1]"]
*/
// The last block of a row adds the parts, in their order.
__device__ float warp_sum(float v) {
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
extern "C" __global__ void k(const float* x, float* y, volatile float* part, unsigned* done, int cols) {
  float s = 0.f;
  for (int c = blockIdx.y * 32 + threadIdx.x; c < cols; c += 128) s += x[(size_t)blockIdx.x * cols + c];
  s = warp_sum(s);
  if (threadIdx.x) return;
  part[blockIdx.x * 4 + blockIdx.y] = s;
  __threadfence();
  if (atomicAdd(done + blockIdx.x, 1u) < 3) return;
  __threadfence();
  const volatile float* p = part + blockIdx.x * 4;
  y[blockIdx.x] = ((p[0] + p[1]) + (p[2] + p[3])) / cols;
}
