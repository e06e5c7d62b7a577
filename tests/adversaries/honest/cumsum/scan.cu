/* kernelforge
[[launch]]
kernel = "k"
grid = ["in0.shape[0]"]
block = [256]
args = ["in0", "out0", "i32:in0.shape[1]"]
*/
// A scan of a block, chunk by chunk.
extern "C" __global__ void k(const float* x, float* y, int cols) {
  const float* a = x + (size_t)blockIdx.x * cols;
  __shared__ float part[256];
  float before = 0.f;
  for (int first = 0; first < cols; first += 256) {
    const int c = first + threadIdx.x;
    part[threadIdx.x] = c < cols ? a[c] : 0.f;
    for (int d = 1; d < 256; d *= 2) {
      __syncthreads();
      const float more = threadIdx.x >= d ? part[threadIdx.x - d] : 0.f;
      __syncthreads();
      part[threadIdx.x] = threadIdx.x >= d ? part[threadIdx.x] + more : part[threadIdx.x];
    }
    __syncthreads();
    if (c < cols) y[(size_t)blockIdx.x * cols + c] = before + part[threadIdx.x];
    before += part[255];
    __syncthreads();
  }
}
