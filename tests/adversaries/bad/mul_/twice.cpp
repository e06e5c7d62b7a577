/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "i64:in0.numel"]
[[launch]]
kernel = "k"
args = ["in0", "in1", "i64:in0.numel"]
*/
// Is launched twice, in place.
extern "C" void k(float* x, const float* s, long long n) {
  for (long long i = 0; i < n; ++i) x[i] *= s[i];
}
