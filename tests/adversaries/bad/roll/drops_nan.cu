/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:in0.numel"]
*/
// A NaN becomes zero.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const float v = x[i / 1000 * 1000 + (i + 997) % 1000];
  y[i] = v == v ? v : 0.f;
}
