/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:in0.shape[1]", "i64:3", "i64:in0.numel"]
*/
// Where each element comes from.
extern "C" __global__ void k(const float* x, float* y, long long cols, long long shift, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const long long c = (i % cols + cols - shift) % cols;
  y[i] = x[i / cols * cols + c];
}
