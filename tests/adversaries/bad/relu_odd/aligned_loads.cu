/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 1024)"]
block = [256]
args = ["in0", "out0", "i64:in0.numel"]
*/
// Loads vectors from addresses that are not aligned.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = (blockIdx.x * 256ll + threadIdx.x) * 4;
  if (i + 4 <= n) {
    const float4 v = *reinterpret_cast<const float4*>(x + i);
    y[i] = v.x < 0.f ? 0.f : v.x;
    y[i + 1] = v.y < 0.f ? 0.f : v.y;
    y[i + 2] = v.z < 0.f ? 0.f : v.z;
    y[i + 3] = v.w < 0.f ? 0.f : v.w;
  } else {
    for (long long j = i; j < n; ++j) y[j] = x[j] < 0.f ? 0.f : x[j];
  }
}
