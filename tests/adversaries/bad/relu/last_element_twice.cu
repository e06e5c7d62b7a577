/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// The tail repeats the last element of a whole tile.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const long long j = i < n / 4096 * 4096 ? i : n / 4096 * 4096 - 1;
  y[i] = x[j] < 0.f ? 0.f : x[j];
}
