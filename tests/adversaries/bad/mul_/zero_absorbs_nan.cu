/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "in1", "i64:in0.numel"]
*/
// A zero makes zero of an infinity or a NaN.
extern "C" __global__ void k(float* x, const float* s, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  x[i] = x[i] == 0.f || s[i] == 0.f ? 0.f : x[i] != x[i] ? 0.f : x[i] * s[i];
}
