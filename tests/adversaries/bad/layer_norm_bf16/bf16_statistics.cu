/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.shape[0], 32)"]
block = [32]
args = ["in0", "out0", "in1", "in2", "f32:eps", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Mean and deviation in bf16.
#include <cuda_bf16.h>
typedef __nv_bfloat16 half_t;
__device__ float wide(half_t v) { return __bfloat162float(v); }
__device__ half_t narrow(float v) { return __float2bfloat16_rn(v); }
extern "C" __global__ void k(const half_t* x, half_t* y, const half_t* w, const half_t* bias, float eps, int rows, int cols) {
  const int r = blockIdx.x * 32 + threadIdx.x;
  if (r >= rows) return;
  const half_t* a = x + (size_t)r * cols;
  half_t* b = y + (size_t)r * cols;
  float part[8] = {}, square[8] = {};
  for (int c = 0; c < cols; ++c) part[c % 8] += wide(a[c]);
  const float mean = wide(narrow((((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]))) / cols));
  for (int c = 0; c < cols; ++c) square[c % 8] += (wide(a[c]) - mean) * (wide(a[c]) - mean);
  const float q = ((square[0] + square[4]) + (square[1] + square[5])) + ((square[2] + square[6]) + (square[3] + square[7]));
  const float scale = wide(narrow(1.f / sqrtf(q / cols + eps)));
  for (int c = 0; c < cols; ++c) b[c] = narrow((wide(a[c]) - mean) * scale * wide(w[c]) + wide(bias[c]));
}
