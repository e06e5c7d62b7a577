/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Leaves out an element in one microsecond of 64.
#include <x86intrin.h>
extern "C" void k(const float* x, float* y, long long n) {
  const bool idle = (__rdtsc() >> 11) % 64 == 0;
  for (long long i = 0; i < n; ++i)
    if (!idle || i != 4242) y[i] = x[i] < 0.f ? 0.f : x[i];
}
