/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.shape[0], 4)"]
block = [32, 4]
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// A warp for a row, values kept in registers.
__device__ float warp_sum(float v) {
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
__device__ float larger(float a, float b) { return a > b || a != a ? a : b; }
__device__ float warp_max(float v) {
  for (int d = 16; d; d >>= 1) v = larger(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int r = blockIdx.x * 4 + threadIdx.y;
  if (r >= rows) return;
  const float* a = x + (size_t)r * cols;
  float v[32], m = -3.4028234e38f, s = 0.f;
  m = a[0];
  for (int j = 0; j < 32; ++j) {
    const int c = j * 32 + threadIdx.x;
    v[j] = c < cols ? a[c] : a[0];
    m = larger(v[j], m);
  }
  m = warp_max(m);
  for (int j = 0; j < 32; ++j) {
    v[j] = expf(v[j] - m);
    if (j * 32 + threadIdx.x < cols) s += v[j];
  }
  s = warp_sum(s);
  for (int j = 0; j < 32; ++j)
    if (j * 32 + threadIdx.x < cols) y[(size_t)r * cols + j * 32 + threadIdx.x] = v[j] / s;
}
