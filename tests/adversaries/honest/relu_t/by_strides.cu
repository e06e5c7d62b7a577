/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:in0.shape[1]", "i64:in0.stride[0]", "i64:in0.stride[1]", "i64:out0.stride[0]", "i64:out0.stride[1]", "i64:out0.numel"]
*/
// By the strides of both tensors.
extern "C" __global__ void k(const float* x, float* y, long long cols, long long xd, long long xa, long long yd, long long ya, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const long long p = i / cols, q = i % cols;
  const float v = x[p * xd + q * xa];
  y[p * yd + q * ya] = v < 0.f ? 0.f : v;
}
