/* kernelforge
[[launch]]
kernel = "k"
grid = [1]
block = [1]
args = ["in0", "out0", "i64:in0.numel"]
*/
// Never returns.
extern "C" __global__ void k(const float*, float* y, long long n) {
  volatile long long s = 0;
  while (n) s = s + 1;
  y[0] = s;
}
