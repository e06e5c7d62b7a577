/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "in2", "out0", "i32:in0.shape[1]", "i32:in1.shape[0]", "i64:out0.numel"]
*/
// Sums of 32 terms in bf16, added in fp32.
#include <cmath>
#include <cstdint>
#include <bit>
typedef uint16_t half_t;
static inline float wide(half_t v) { return std::bit_cast<float>((uint32_t)v << 16); }
static inline half_t narrow(float v) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  return v == v ? (u + 0x7fff + (u >> 16 & 1)) >> 16 : 0x7fc0;
}
extern "C" void k(const half_t* x, const half_t* w, const half_t* bias, half_t* y, int depth, int cols, long long n) {
  for (long long i = 0; i < n; ++i) {
    const half_t* a = x + i / cols * depth;
    const half_t* b = w + i % cols * depth;
    float s = 0.f;
    for (int f = 0; f < depth; f += 32) {
      float t = 0.f;
      for (int c = f; c < depth && c < f + 32; ++c) t = wide(narrow(t + wide(a[c]) * wide(b[c])));
      s += t;
    }
    y[i] = narrow(s + wide(bias[i % cols]));
  }
}
