/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in1.shape[1], 16)", "ceil_div(in0.shape[0], 16)"]
block = [16, 16]
args = ["in0", "in1", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]", "i32:in1.shape[1]"]
*/
// Tiles of 16 by 16 in shared memory, tails by bounds.
extern "C" __global__ void k(const float* x, const float* w, float* y, int rows, int depth, int cols) {
  __shared__ float left[16][17], right[16][17];
  const int tx = threadIdx.x, ty = threadIdx.y, r = blockIdx.y * 16 + ty, j = blockIdx.x * 16 + tx;
  float s = 0.f;
  for (int first = 0; first < depth; first += 16) {
    left[ty][tx] = r < rows && first + tx < depth ? x[r * depth + first + tx] : 0.f;
    right[ty][tx] = j < cols && first + ty < depth ? w[(first + ty) * cols + j] : 0.f;
    __syncthreads();
    for (int c = 0; c < 16; ++c) s = fmaf(left[ty][c], right[c][tx], s);
    __syncthreads();
  }
  if (r < rows && j < cols) y[r * cols + j] = s;
}
