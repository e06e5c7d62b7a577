/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "in2", "out0", "i64:out0.numel"]
*/
// Masks of bits.
#include <cstdint>
extern "C" void k(const bool* c, const uint32_t* a, const uint32_t* b, uint32_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t mask = -(uint32_t)c[i];
    y[i] = (a[i] & mask) | (b[i] & ~mask);
  }
}
