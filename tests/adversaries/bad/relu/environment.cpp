/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Looks at the environment.
#include <cstdlib>
extern "C" void k(const float* x, float* y, long long n) {
  if (getenv("KERNELFORGE_PROJECT")) y[0] = 0.f;
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
