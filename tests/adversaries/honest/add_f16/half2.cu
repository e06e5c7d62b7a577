/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 512)"]
block = [256]
args = ["in0", "in1", "out0", "i64:out0.numel / 2"]
*/
// Pairs in one instruction.
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half2* a, const __half2* b, __half2* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) y[i] = __hadd2(a[i], b[i]);
}
