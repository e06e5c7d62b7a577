/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Asks for the time.
#include <ctime>
extern "C" void k(const float* x, float* y, long long n) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (now.tv_nsec % 2) y[0] = 0.f;
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
