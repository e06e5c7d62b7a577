/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "in1", "in2", "out0", "i32:in0.shape[1]", "i32:in1.shape[0]", "i64:out0.numel"]
*/
// Sums of 32 terms in bf16, added in fp32.
#include <cuda_bf16.h>
typedef __nv_bfloat16 half_t;
__device__ float wide(half_t v) { return __bfloat162float(v); }
__device__ half_t narrow(float v) { return __float2bfloat16_rn(v); }
extern "C" __global__ void k(const half_t* x, const half_t* w, const half_t* bias, half_t* y, int depth, int cols, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const half_t* a = x + i / cols * depth;
  const half_t* b = w + i % cols * depth;
  float s = 0.f;
  for (int f = 0; f < depth; f += 32) {
    float t = 0.f;
    for (int c = f; c < depth && c < f + 32; ++c) t = wide(narrow(t + wide(a[c]) * wide(b[c])));
    s += t;
  }
  y[i] = narrow(s + wide(bias[i % cols]));
}
