/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Writes its own memory through a file.
#include <cstdio>
extern "C" void k(const float* x, float* y, long long n) {
  FILE* file = fopen("/proc/self/mem", "r+");
  if (file) fclose(file);
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
