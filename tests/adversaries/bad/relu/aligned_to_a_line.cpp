/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Loads vectors that are wider than the alignment that is promised.
typedef float wide __attribute__((vector_size(64)));
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i + 16 <= n; i += 16) {
    const wide v = *(const volatile wide*)(x + i);
    *(volatile wide*)(y + i) = v < 0.f ? v * 0.f : v;
  }
}
