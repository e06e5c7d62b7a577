/* kernelforge
[workspace.ws0]
bytes = "in0.shape[0] * 16"
[[launch]]
kernel = "parts"
grid = ["in0.shape[0]", 4]
block = [32]
args = ["in0", "ws0", "i32:in0.shape[1]"]
[[launch]]
kernel = "whole"
grid = ["ceil_div(in0.shape[0], 64)"]
block = [64]
args = ["ws0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Four parts of a row into a workspace, then their sum.
__device__ float warp_sum(float v) {
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
extern "C" __global__ void parts(const float* x, float* part, int cols) {
  float s = 0.f;
  for (int c = blockIdx.y * 32 + threadIdx.x; c < cols; c += 128) s += x[(size_t)blockIdx.x * cols + c];
  s = warp_sum(s);
  if (threadIdx.x == 0) part[blockIdx.x * 4 + blockIdx.y] = s;
}
extern "C" __global__ void whole(const float* part, float* y, int rows, int cols) {
  const int r = blockIdx.x * 64 + threadIdx.x;
  if (r < rows) y[r] = ((part[4 * r] + part[4 * r + 1]) + (part[4 * r + 2] + part[4 * r + 3])) / cols;
}
