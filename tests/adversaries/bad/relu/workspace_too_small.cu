/* kernelforge
[workspace.ws0]
bytes = "in0.numel * 4 - 4"
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "ws0", "i64:out0.numel"]
*/
// Writes behind its workspace.
extern "C" __global__ void k(const float* x, float* y, float* ws, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  ws[i] = x[i];
  y[i] = ws[i] < 0.f ? 0.f : ws[i];
}
