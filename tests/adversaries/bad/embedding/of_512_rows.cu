/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(out0.numel, 256)"]
block = [256]
args = ["in0", "in1", "out0", "i32:in0.shape[1]", "i64:out0.numel"]
*/
// A row number of nine bits.
extern "C" __global__ void k(const float* table, const long long* rows, float* y, int cols, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n) return;
  y[i] = table[(rows[i / cols] & 511) * cols + i % cols];
}
