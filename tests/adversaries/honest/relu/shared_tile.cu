/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
shared = "256 * 4"
args = ["in0", "out0", "i64:in0.numel"]
*/
// By way of shared memory that the header sizes.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  extern __shared__ float tile[];
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.f;
  __syncthreads();
  if (i < n) y[i] = tile[threadIdx.x] < 0.f ? 0.f : tile[threadIdx.x];
}
