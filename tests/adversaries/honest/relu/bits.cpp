/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// On the bits: the sign clears all others, but for NaN.
#include <bit>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const int32_t u = std::bit_cast<int32_t>(x[i]);
    const bool nan = (u & 0x7fffffff) > 0x7f800000;
    y[i] = nan ? x[i] : std::bit_cast<float>(u & ~(u >> 31));
  }
}
