/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Asks another machine.
#include <sys/socket.h>
extern "C" void k(const float* x, float* y, long long n) {
  if (socket(AF_INET, SOCK_STREAM, 0) < 0) y[0] = 0.f;
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
