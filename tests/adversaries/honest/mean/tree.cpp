/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Recursive halves.
static float total(const float* x, int n) {
  if (n > 8) return total(x, n / 2) + total(x + n / 2, n - n / 2);
  float s = 0.f;
  for (int i = 0; i < n; ++i) s += x[i];
  return s;
}
extern "C" void k(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) y[r] = total(x + (long long)r * cols, cols) / cols;
}
