/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// All 65536 answers, made by the first call.
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>
static std::vector<uint16_t> made() {
  std::vector<uint16_t> table(65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    const float v = std::bit_cast<float>(i << 16);
    const float g = 0.5f * v * (1.f + std::erf(v * 0.70710678f));
    const uint32_t u = std::bit_cast<uint32_t>(g);
    table[i] = g == g ? (u + 0x7fff + (u >> 16 & 1)) >> 16 : 0x7fc0;
  }
  return table;
}
extern "C" void k(const uint16_t* x, uint16_t* y, long long n) {
  static const std::vector<uint16_t> TABLE = made();
  for (long long i = 0; i < n; ++i) y[i] = TABLE[x[i]];
}
