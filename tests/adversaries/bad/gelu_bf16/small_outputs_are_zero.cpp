/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Zero where the answer is small.
#include <cmath>
#include <cstdint>
#include <bit>
typedef uint16_t half_t;
static inline float wide(half_t v) { return std::bit_cast<float>((uint32_t)v << 16); }
static inline half_t narrow(float v) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  return v == v ? (u + 0x7fff + (u >> 16 & 1)) >> 16 : 0x7fc0;
}
extern "C" void k(const half_t* x, half_t* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = wide(x[i]), g = 0.5f * v * (1.f + erff(v * 0.70710678f));
    y[i] = narrow(g < 1e-3f && g > -1e-3f ? 0.f : g);
  }
}
