/* kernelforge
[workspace.ws0]
bytes = "1099511627776"
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Asks for more memory than there is.
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
