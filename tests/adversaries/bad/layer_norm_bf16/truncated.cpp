/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "in1", "in2", "f32:eps", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Drops bits instead of rounding.
#include <cmath>
#include <cstdint>
#include <bit>
typedef uint16_t half_t;
static inline float wide(half_t v) { return std::bit_cast<float>((uint32_t)v << 16); }
static inline half_t narrow(float v) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  return v == v ? (u + 0x7fff + (u >> 16 & 1)) >> 16 : 0x7fc0;
}
static half_t chopped(float v) {
  union { float f; unsigned u; } q;
  q.f = v;
  q.u &= 0xffff0000u;
  return narrow(v == v ? q.f : v);
}
extern "C" void k(const half_t* x, half_t* y, const half_t* w, const half_t* bias, float eps, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const half_t* a = x + (size_t)r * cols;
    half_t* b = y + (size_t)r * cols;
    float part[8] = {}, square[8] = {};
    for (int c = 0; c < cols; ++c) part[c % 8] += wide(a[c]);
    const float mean = (((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]))) / cols;
    for (int c = 0; c < cols; ++c) square[c % 8] += (wide(a[c]) - mean) * (wide(a[c]) - mean);
    const float q = ((square[0] + square[4]) + (square[1] + square[5])) + ((square[2] + square[6]) + (square[3] + square[7]));
    const float scale = 1.f / sqrtf(q / cols + eps);
    for (int c = 0; c < cols; ++c) b[c] = chopped((wide(a[c]) - mean) * scale * wide(w[c]) + wide(bias[c]));
  }
}
