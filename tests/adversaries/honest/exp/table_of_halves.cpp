/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// A table of 64 powers, made when it is loaded, and four terms.
#include <array>
#include <cmath>
static const std::array<double, 64> TABLE = [] {
  std::array<double, 64> t{};
  for (int i = 0; i < 64; ++i) t[i] = std::exp2(i / 64.);
  return t;
}();
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = x[i];
    if (!(v > -86.f && v < 88.f)) {
      y[i] = std::exp(v);
      continue;
    }
    const double q = std::nearbyint(v * 92.332482616893656);
    const double r = v - q * 0.010830424696249145;
    const int step = (int)q;
    const double p = 1 + r * (1 + r * (0.5 + r * (1. / 6)));
    y[i] = (float)std::ldexp(p * TABLE[step & 63], step >> 6);
  }
}
