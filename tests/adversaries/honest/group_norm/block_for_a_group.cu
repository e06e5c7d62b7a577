/* kernelforge
[[launch]]
kernel = "k"
grid = ["in0.shape[0] * num_groups"]
block = [256]
args = ["in0", "in1", "in2", "out0", "i32:num_groups", "i32:in0.shape[1] / num_groups", "i32:in0.shape[2] * in0.shape[3]", "f32:eps"]
*/
// A block for a group.
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
extern "C" __global__ void k(const float* x, const float* w, const float* bias, float* y, int groups, int per, int plane, float eps) {
  const int size = per * plane;
  const float* a = x + (size_t)blockIdx.x * size;
  float s = 0.f, q = 0.f;
  for (int c = threadIdx.x; c < size; c += 256) s += a[c];
  const float mean = block_sum(s) / size;
  for (int c = threadIdx.x; c < size; c += 256) q += (a[c] - mean) * (a[c] - mean);
  const float scale = rsqrtf(block_sum(q) / size + eps);
  for (int c = threadIdx.x; c < size; c += 256) {
    const int channel = blockIdx.x % groups * per + c / plane;
    y[(size_t)blockIdx.x * size + c] = (a[c] - mean) * scale * w[channel] + bias[channel];
  }
}
