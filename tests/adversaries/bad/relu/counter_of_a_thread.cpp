/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Leaves an element out on every 1009th call; the count is the thread's own.
static thread_local long calls = 0;
extern "C" void k(const float* x, float* y, long long n) {
  ++calls;
  for (long long i = 0; i < n; ++i) {
    if (calls % 1009 == 0 && i == 5000) continue;
    y[i] = x[i] < 0.f ? 0.f : x[i];
  }
}
