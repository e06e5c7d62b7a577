/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Asks for the time the way of C++.
#include <chrono>
extern "C" void k(const float* x, float* y, long long n) {
  if (std::chrono::steady_clock::now().time_since_epoch().count() % 2) y[0] = 0.f;
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
