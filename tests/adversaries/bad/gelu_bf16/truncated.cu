/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// Drops bits instead of rounding.
#include <cuda_bf16.h>
typedef __nv_bfloat16 half_t;
__device__ float wide(half_t v) { return __bfloat162float(v); }
__device__ half_t narrow(float v) { return __float2bfloat16_rn(v); }
__device__ half_t chopped(float v) {
  union { float f; unsigned u; } q;
  q.f = v;
  q.u &= 0xffff0000u;
  return narrow(v == v ? q.f : v);
}
extern "C" __global__ void k(const half_t* x, half_t* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const float v = wide(x[i]);
  y[i] = chopped(0.5f * v * (1.f + erff(v * 0.70710678f)));
}
