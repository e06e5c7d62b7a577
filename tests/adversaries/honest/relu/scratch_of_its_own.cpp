/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Scratch memory that is allocated once and used by every call.
#include <memory>
extern "C" void k(const float* x, float* y, long long n) {
  static thread_local std::unique_ptr<float[]> scratch;
  if (!scratch) scratch.reset(new float[n]);
  for (long long i = 0; i < n; ++i) scratch[i] = x[i] < 0.f ? 0.f : x[i];
  for (long long i = 0; i < n; ++i) y[i] = scratch[i];
}
