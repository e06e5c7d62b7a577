/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// A table of 1024 steps without interpolation.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const float v = x[i], q = floorf(v * 64.f) * 0.015625f;
  y[i] = v == v ? expf(q) : v;
}
