/* kernelforge
[[launch]]
kernel = "k"
grid = ["in0.shape[0]"]
block = [32]
args = ["in0", "in1", "in2", "out0", "i32:in0.shape[1]", "f32:eps"]
*/
// Welford's update by thread, merged by shuffles.
extern "C" __global__ void k(const float* x, const float* w, const float* bias, float* y, int cols, float eps) {
  const float* a = x + (size_t)blockIdx.x * cols;
  float count = 0.f, mean = 0.f, q = 0.f;
  for (int c = threadIdx.x; c < cols; c += 32) {
    count += 1.f;
    const float d = a[c] - mean;
    mean += d / count;
    q += d * (a[c] - mean);
  }
  for (int by = 16; by; by >>= 1) {
    const float n = __shfl_xor_sync(0xffffffffu, count, by), m = __shfl_xor_sync(0xffffffffu, mean, by);
    const float o = __shfl_xor_sync(0xffffffffu, q, by), d = m - mean, all = count + n;
    q += o + d * d * count * n / all;
    mean = (mean * count + m * n) / all;
    count = all;
  }
  const float scale = rsqrtf(q / cols + eps);
  mean = __shfl_sync(0xffffffffu, mean, 0);
  for (int c = threadIdx.x; c < cols; c += 32)
    y[(size_t)blockIdx.x * cols + c] = (a[c] - mean) * scale * w[c] + bias[c];
}
