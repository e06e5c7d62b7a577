/* kernelforge
[[launch]]
kernel = "first"
args = ["in0", "out0", "i64:in0.numel"]
[[launch]]
kernel = "second"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Halves, one launch each.
extern "C" void first(const float* x, float* y, long long n) {
  for (long long i = 0; i < n / 2; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
extern "C" void second(const float* x, float* y, long long n) {
  for (long long i = n / 2; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
