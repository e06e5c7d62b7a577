/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 512)"]
block = [256]
args = ["in0", "out0", "i64:in0.numel"]
*/
// Pairs of bf16 in one word.
#include <cuda_bf16.h>
extern "C" __global__ void k(const __nv_bfloat162* x, __nv_bfloat162* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (2 * i >= n) return;
  const float2 v = __bfloat1622float2(x[i]);
  y[i] = __floats2bfloat162_rn(0.5f * v.x * (1.f + erff(v.x * 0.70710678f)), 0.5f * v.y * (1.f + erff(v.y * 0.70710678f)));
}
