/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "in1", "out0", "i32:in0.shape[1]", "i32:in1.shape[1]", "i64:out0.numel"]
*/
// One element of 9900 is missing a term.
extern "C" __global__ void k(const float* x, const float* w, float* y, int depth, int cols, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const float* a = x + i / cols * depth;
  const float* b = w + i % cols;
  float s = 0.f;
  for (int c = 0; c < (i == 5077 ? depth - 1 : depth); ++c) s += a[c] * b[c * cols];
  y[i] = s;
}
