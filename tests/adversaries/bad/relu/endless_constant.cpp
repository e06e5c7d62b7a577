/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// A constant that never ends.
constexpr int forever() {
  int i = 0;
  while (true) i = (i + 1) % 7;
  return i;
}
static constexpr int never = forever();
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
