/* kernelforge
[[launch]]
kernel = "count"
grid = [1]
block = [1]
args = []
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:in0.numel"]
*/
// Leaves an element out on every hundredth call.
__device__ long calls = 0;
extern "C" __global__ void count() { ++calls; }
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  if (calls % 100 == 0 && i == 5000) return;
  y[i] = x[i] < 0.f ? 0.f : x[i];
}
