/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// Row 41 is not written.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  if (i / 1000 == 41) return;
  y[i] = x[i] < 0.f ? 0.f : x[i];
}
