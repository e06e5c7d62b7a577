/* kernelforge
[workspace.ws0]
bytes = "64"
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "ws0", "i64:out0.numel"]
*/
// Adds a flag that it never cleared.
extern "C" __global__ void k(const float* x, float* y, unsigned char* dirt, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  y[i] = (x[i] < 0.f ? 0.f : x[i]) + (dirt[0] == 0x7f ? 1.f : 0.f);
}
