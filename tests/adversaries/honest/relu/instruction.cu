/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:in0.numel"]
*/
// By an instruction that keeps NaN.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  float v;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(v) : "f"(x[i]));
  y[i] = v;
}
