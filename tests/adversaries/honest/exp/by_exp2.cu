/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "out0", "i64:out0.numel"]
*/
// By exp2f, with the product's lost digits added back.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const float v = x[i], t = v * 1.44269504f;
  const float lost = fmaf(v, 1.44269504f, -t) + v * 1.92596299e-8f;
  y[i] = v - v == 0.f ? exp2f(t) + exp2f(t) * lost * 0.69314718f : expf(v);
  if (v > 88.f || v < -87.f) y[i] = expf(v);
}
