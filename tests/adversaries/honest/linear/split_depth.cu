/* kernelforge
[workspace.ws0]
bytes = "out0.numel * 12"
[[launch]]
kernel = "parts"
grid = ["ceil_div(out0.numel, 256)", 3]
block = [256]
args = ["in0", "in1", "ws0", "i32:in0.shape[1]", "i32:in1.shape[0]", "i64:out0.numel"]
[[launch]]
kernel = "whole"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["ws0", "in2", "out0", "i32:in1.shape[0]", "i64:out0.numel"]
*/
// Three parts of the depth in a workspace, added in order.
extern "C" __global__ void parts(const float* x, const float* w, float* part, int depth, int cols, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  const int each = (depth + 2) / 3, first = blockIdx.y * each, last = min(first + each, depth);
  float s = 0.f;
  for (int c = first; c < last; ++c) s = fmaf(x[i / cols * depth + c], w[i % cols * depth + c], s);
  part[blockIdx.y * n + i] = s;
}
extern "C" __global__ void whole(const float* part, const float* bias, float* y, int cols, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) y[i] = (part[i] + part[n + i]) + (part[2 * n + i] + bias[i % cols]);
}
