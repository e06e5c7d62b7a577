/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// A thread of the C library.
#include <pthread.h>
static void* later(void* p) { return p; }
extern "C" void k(const float* x, float* y, long long n) {
  pthread_t t;
  pthread_create(&t, nullptr, later, y);
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
