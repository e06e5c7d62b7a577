/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Asks for more threads than there are.
#include <omp.h>
extern "C" void k(const float* x, float* y, long long n) {
  omp_set_num_threads(512);
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
