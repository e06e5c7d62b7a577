/* kernelforge
[workspace.ws0]
bytes = "4"
init = "zero"
[[launch]]
kernel = "k"
grid = ["in0.shape[0] * 1000"]
block = [1024]
args = ["in0", "out0", "ws0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Blocks wait for one that may never start.
extern "C" __global__ void k(const float* x, float* y, volatile int* done, int rows, int cols) {
  const int last = gridDim.x - 1;
  if (blockIdx.x == last && threadIdx.x == 0) {
    for (int r = 0; r < rows; ++r) {
      float s = 0.f;
      for (int c = 0; c < cols; ++c) s += x[r * cols + c];
      y[r] = s / cols;
    }
    *done = 1;
  }
  while (blockIdx.x != last && *done == 0) {
  }
}
