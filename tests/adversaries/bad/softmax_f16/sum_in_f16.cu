/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.shape[0], 32)"]
block = [32]
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Adds up in float16.
#include <cuda_fp16.h>
typedef __half half_t;
__device__ float wide(half_t v) { return __half2float(v); }
__device__ half_t narrow(float v) { return __float2half_rn(v); }
extern "C" __global__ void k(const half_t* x, half_t* y, int rows, int cols) {
  const int r = blockIdx.x * 32 + threadIdx.x;
  if (r >= rows) return;
  const half_t* a = x + (size_t)r * cols;
  half_t* b = y + (size_t)r * cols;
  float m = wide(a[0]);
  for (int c = 1; c < cols; ++c) m = wide(a[c]) > m || wide(a[c]) != wide(a[c]) ? wide(a[c]) : m;
  half_t s = narrow(0.f);
  for (int c = 0; c < cols; ++c) s = narrow(wide(s) + expf(wide(a[c]) - m));
  for (int c = 0; c < cols; ++c) b[c] = narrow(expf(wide(a[c]) - m) / wide(s));
}
