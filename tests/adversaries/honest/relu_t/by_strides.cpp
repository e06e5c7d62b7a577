/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.shape[1]", "i64:in0.stride[0]", "i64:in0.stride[1]", "i64:out0.stride[0]", "i64:out0.stride[1]", "i64:out0.numel"]
*/
// By the strides of both tensors.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long cols, long long xd, long long xa, long long yd, long long ya, long long n) {
  for (long long i = 0; i < n; ++i) {
    const long long p = i / cols, q = i % cols;
    const float v = x[p * xd + q * xa];
    y[p * yd + q * ya] = v < 0.f ? 0.f : v;
  }
}
