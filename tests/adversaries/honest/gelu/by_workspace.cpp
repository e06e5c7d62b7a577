/* kernelforge
[workspace.ws0]
bytes = "in0.numel * 4"
[[launch]]
kernel = "inner"
args = ["in0", "ws0", "i64:in0.numel"]
[[launch]]
kernel = "outer"
args = ["in0", "ws0", "out0", "i64:in0.numel"]
*/
// erf into a workspace, then the product.
#include <cmath>
extern "C" void inner(const float* x, float* t, long long n) {
  for (long long i = 0; i < n; ++i) t[i] = erff(x[i] * 0.70710678f);
}
extern "C" void outer(const float* x, const float* t, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = 0.5f * x[i] * (1.f + t[i]);
}
