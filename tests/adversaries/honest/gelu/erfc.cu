/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// By erfc, which keeps the digits of small answers.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  y[i] = 0.5f * x[i] * erfcf(-x[i] * 0.70710678f);
  if (x[i] - x[i] != 0.f) y[i] = 0.5f * x[i] * (1.f + erff(x[i]));
}
