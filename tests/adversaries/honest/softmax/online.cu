/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.shape[0], 32)"]
block = [32]
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Maximum and sum in one pass; a row that holds an infinity is NaN throughout.
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int r = blockIdx.x * 32 + threadIdx.x;
  if (r >= rows) return;
  const float* a = x + (size_t)r * cols;
  float* b = y + (size_t)r * cols;
  float m = a[0], s = m < __int_as_float(0x7f800000) ? 1.f : m - m;
  for (int c = 1; c < cols; ++c) {
    const float next = a[c] > m || a[c] != a[c] ? a[c] : m;
    s = (m == next ? s : s * expf(m - next)) +
          (a[c] == next && next < __int_as_float(0x7f800000) ? 1.f : expf(a[c] - next));
    m = next;
  }
  for (int c = 0; c < cols; ++c) b[c] = expf(a[c] - m) / s;
}
