/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// A series of four terms where the input is small.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  y[i] = v > -0.1f && v < 0.1f ? 1.f + v * (1.f + v * (0.5f + v * 0.16666667f)) : expf(v);
}
