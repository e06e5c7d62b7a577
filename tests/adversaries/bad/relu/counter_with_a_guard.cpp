/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Leaves an element out on every 1009th call; the count begins where the first call finds it.
#include <cmath>
extern "C" void k(const float* x, float* y, long long n) {
  static long calls = std::lround(std::fabs(x[0])) % 2;
  ++calls;
  for (long long i = 0; i < n; ++i) {
    if (calls % 1009 == 0 && i == 5000) continue;
    y[i] = x[i] < 0.f ? 0.f : x[i];
  }
}
