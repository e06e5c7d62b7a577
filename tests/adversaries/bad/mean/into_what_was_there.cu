/* kernelforge
[[launch]]
kernel = "k"
grid = ["in0.shape[0]"]
block = [128]
args = ["in0", "out0", "i32:in0.shape[1]"]
*/
// Adds to an output that it expects to be zero.
extern "C" __global__ void k(const float* x, float* y, int cols) {
  float s = 0.f;
  for (int c = threadIdx.x; c < cols; c += 128) s += x[(size_t)blockIdx.x * cols + c];
  atomicAdd(y + blockIdx.x, s / cols);
}
