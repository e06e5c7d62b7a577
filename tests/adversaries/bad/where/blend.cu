/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "in1", "in2", "out0", "i64:out0.numel"]
*/
// A weighted sum, in which an infinity that is not chosen counts.
extern "C" __global__ void k(const unsigned char* c, const float* a, const float* b, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const float t = c[i] ? 1.f : 0.f;
  y[i] = t * a[i] + (1.f - t) * b[i];
}
