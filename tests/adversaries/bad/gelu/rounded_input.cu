/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// Rounds its input to bf16.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  union { float f; unsigned u; } v;
  v.f = x[i];
  if (v.f == v.f) v.u = v.u + 0x8000u & 0xffff0000u;
  y[i] = 0.5f * v.f * (1.f + erff(v.f * 0.70710678f));
}
