/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// Three terms of a series where the input is small.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const float v = x[i], q = v * v;
  if (v > -0.75f && v < 0.75f)
    y[i] = 0.5f * v * (1.f + 0.79788456f * v * (1.f - q / 6.f + q * q / 40.f));
  else
    y[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
}
