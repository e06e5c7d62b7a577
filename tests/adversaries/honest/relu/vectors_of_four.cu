/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 1024)"]
block = [256]
args = ["in0", "out0", "i64:in0.numel"]
*/
// float4 loads, and a tail.
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const long long i = (blockIdx.x * 256ll + threadIdx.x) * 4;
  if (i + 4 <= n) {
    float4 v = *reinterpret_cast<const float4*>(x + i);
    v.x = v.x < 0.f ? 0.f : v.x;
    v.y = v.y < 0.f ? 0.f : v.y;
    v.z = v.z < 0.f ? 0.f : v.z;
    v.w = v.w < 0.f ? 0.f : v.w;
    *reinterpret_cast<float4*>(y + i) = v;
  } else {
    for (long long j = i; j < n; ++j) y[j] = x[j] < 0.f ? 0.f : x[j];
  }
}
