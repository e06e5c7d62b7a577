/* kernelforge
[[launch]]
kernel = "k"
grid = [1, 70000, 70000]
block = [256]
args = ["in0", "out0", "i64:in0.numel"]
*/
// A grid that no device takes.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) y[i] = x[i] < 0.f ? 0.f : x[i];
}
