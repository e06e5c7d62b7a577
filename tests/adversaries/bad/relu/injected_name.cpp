/* kernelforge
[[launch]]
kernel = "k); abort("
args = ["in0", "out0", "i64:in0.numel"]
*/
// A name that is code.
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
