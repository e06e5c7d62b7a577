/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i64:in0.shape[1]", "i64:in1.stride[0]", "i64:in1.stride[1]", "i64:out0.numel"]
*/
// By the strides of the other tensor.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, const float* s, float* y, long long cols, long long down, long long across, long long n) {
  for (long long i = 0; i < n; ++i) {
    y[i] = x[i] - s[i / cols * down + i % cols * across];
  }
}
