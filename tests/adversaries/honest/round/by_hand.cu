/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// By floor, halves to even.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const float f = floorf(x[i]), d = x[i] - f;
  const bool odd = fmodf(f, 2.f) != 0.f;
  y[i] = d > 0.5f || (d == 0.5f && odd) ? f + 1.f : f;
  if (x[i] - x[i] != 0.f) y[i] = x[i];
  if (y[i] == 0.f) y[i] = copysignf(0.f, x[i]);
}
