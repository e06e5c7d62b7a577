/* kernelforge
[[launch]]
kernel = "k"
grid = ["in0.shape[0]"]
block = [512]
args = ["in0", "out0", "i32:in0.shape[1]"]
*/
// Reads partial sums of other warps before they are written.
extern "C" __global__ void k(const float* x, float* y, int cols) {
  __shared__ float part[512];
  float s = 0.f;
  for (int c = threadIdx.x; c < cols; c += 512) s += x[(size_t)blockIdx.x * cols + c];
  for (int spin = 0; spin < (int)threadIdx.x * 64; ++spin) s += 1e-30f;
  part[threadIdx.x] = s;
  if (threadIdx.x == 0) {
    for (int j = 1; j < 512; ++j) s += part[j];
    y[blockIdx.x] = s / cols;
  }
}
