/* kernelforge
[[launch]]
kernel = "k"
grid = ["in0.shape[0]"]
block = [32]
args = ["in0", "out0", "out1", "i32:in0.shape[1]"]
*/
// A warp for a row; the lower place wins.
extern "C" __global__ void k(const float* x, float* y, long long* at, int cols) {
  const float* a = x + (size_t)blockIdx.x * cols;
  float v = a[threadIdx.x];
  int m = threadIdx.x;
  for (int c = threadIdx.x + 32; c < cols; c += 32)
    if (a[c] > v || (a[c] != a[c] && v == v)) v = a[m = c];
  for (int d = 16; d; d >>= 1) {
    const float o = __shfl_xor_sync(0xffffffffu, v, d);
    const int p = __shfl_xor_sync(0xffffffffu, m, d);
    const bool nan = o != o, mine = v != v;
    if (nan != mine ? nan : o > v || ((o == v || nan) && p < m)) {
      v = o;
      m = p;
    }
  }
  if (threadIdx.x == 0) {
    y[blockIdx.x] = v;
    at[blockIdx.x] = m;
  }
}
