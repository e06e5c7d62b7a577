/* kernelforge
[[launch]]
kernel = "k"
grid = ["in0.shape[0]"]
block = [256]
args = ["in0", "out0", "i32:in0.shape[1]"]
*/
// Threads add to one sum without a word to each other.
extern "C" __global__ void k(const float* x, float* y, int cols) {
  __shared__ volatile float sum;
  if (threadIdx.x == 0) sum = 0.f;
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += 256) sum = sum + x[(size_t)blockIdx.x * cols + c];
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = sum / cols;
}
