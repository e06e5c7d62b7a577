/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "in1", "in2", "out0", "i64:out0.numel"]
*/
// One condition for four elements.
extern "C" __global__ void k(const unsigned char* c, const float* a, const float* b, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  y[i] = c[i / 4 * 4] ? a[i] : b[i];
}
