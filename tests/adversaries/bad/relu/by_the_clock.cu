/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:in0.numel"]
*/
// Leaves out an element in one microsecond of 64.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  if (i == 4242 && (clock64() >> 11) % 64 == 0) return;
  y[i] = x[i] < 0.f ? 0.f : x[i];
}
