/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "in1", "out0", "i32:in0.shape[1]", "i64:out0.numel"]
*/
// Rows in bf16.
extern "C" __global__ void k(const float* table, const long long* rows, float* y, int cols, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  union { float f; unsigned u; } v;
  v.f = table[rows[i / cols] * cols + i % cols];
  if (v.f == v.f) v.u = v.u + 0x8000u & 0xffff0000u;
  y[i] = v.f;
}
