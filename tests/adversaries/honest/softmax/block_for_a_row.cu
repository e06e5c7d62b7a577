/* kernelforge
[[launch]]
kernel = "k"
grid = ["in0.shape[0]"]
block = [256]
args = ["in0", "out0", "i32:in0.shape[1]"]
*/
// A block for a row, trees in shared memory.
__device__ float larger(float a, float b) { return a > b || a != a ? a : b; }
extern "C" __global__ void k(const float* x, float* y, int cols) {
  const float* a = x + (size_t)blockIdx.x * cols;
  __shared__ float part[256];
  float m = a[0];
  for (int c = threadIdx.x; c < cols; c += 256) m = larger(a[c], m);
  part[threadIdx.x] = m;
  for (int d = 128; d; d >>= 1) {
    __syncthreads();
    if (threadIdx.x < d) part[threadIdx.x] = larger(part[threadIdx.x], part[threadIdx.x + d]);
  }
  __syncthreads();
  m = part[0];
  __syncthreads();
  float s = 0.f;
  for (int c = threadIdx.x; c < cols; c += 256) s += expf(a[c] - m);
  part[threadIdx.x] = s;
  for (int d = 128; d; d >>= 1) {
    __syncthreads();
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
  }
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += 256) y[(size_t)blockIdx.x * cols + c] = expf(a[c] - m) / part[0];
}
