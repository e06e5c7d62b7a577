/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// Twelve terms of the series around zero, whatever the input.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  float t = 1.f, s = 1.f;
  for (int j = 1; j < 13; ++j) s += t = t * x[i] / j;
  y[i] = s;
}
