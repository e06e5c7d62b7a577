/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Makes memory executable.
#include <sys/mman.h>
extern "C" void k(const float* x, float* y, long long n) {
  mprotect(y, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
