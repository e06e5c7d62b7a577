/* kernelforge
[[launch]]
kernel = "k"
grid = ["in0.shape[0]"]
block = [256]
args = ["in0", "in1", "in2", "out0", "i32:in0.shape[1]", "f32:eps"]
*/
// Warp shuffles and shared partial sums.
__device__ float warp_sum(float v) {
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
__device__ float block_sum(float v) {
  __shared__ float part[32];
  v = warp_sum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  return warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.f);
}
extern "C" __global__ void k(const float* x, const float* w, const float* bias, float* y, int cols, float eps) {
  const float* a = x + (size_t)blockIdx.x * cols;
  float s = 0.f, q = 0.f;
  for (int c = threadIdx.x; c < cols; c += 256) s += a[c];
  const float mean = block_sum(s) / cols;
  for (int c = threadIdx.x; c < cols; c += 256) q += (a[c] - mean) * (a[c] - mean);
  const float scale = rsqrtf(block_sum(q) / cols + eps);
  for (int c = threadIdx.x; c < cols; c += 256)
    y[(size_t)blockIdx.x * cols + c] = (a[c] - mean) * scale * w[c] + bias[c];
}
