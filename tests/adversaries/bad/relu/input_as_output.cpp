/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in0", "i64:in0.numel"]
*/
// Hands its input in as the output.
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
