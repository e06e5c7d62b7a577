/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Pads with zeros.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const int c = i % 24;
    float m = -INFINITY;
    for (int dy = -1; dy < 2; ++dy)
      for (int dx = -1; dx < 2; ++dx) {
        const int p = 2 * (int)(i / 24 / 9 % 7) + dy, q = 2 * (int)(i / 24 % 9) + dx;
        const bool inside = p >= 0 && p < 13 && q >= 0 && q < 17;
        const float v = inside ? x[((i / 1512 * 13 + p) * 17 + q) * 24 + c] : 0.f;
        if (v > m || v != v) m = v;
      }
    y[i] = m;
  }
}
