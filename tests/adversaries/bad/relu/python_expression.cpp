/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:__import__('os').getpid()"]
*/
// An expression that is a program.
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
