/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "in2", "out0", "i32:in0.shape[1]", "i32:in1.shape[0]", "i64:out0.numel"]
*/
// Operands in tf32.
#include <cmath>
#include <cstdint>
static inline float cut(float v) {
  union { float f; unsigned u; } q;
  q.f = v;
  if (v == v) q.u = q.u + 0x1000u & 0xffffe000u;
  return q.f;
}
extern "C" void k(const float* x, const float* w, const float* bias, float* y, int depth, int cols, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float* a = x + i / cols * depth;
    const float* b = w + i % cols * depth;
    float s = 0.f;
    for (int c = 0; c < depth; ++c) s += cut(a[c]) * cut(b[c]);
    y[i] = s + bias[i % cols];
  }
}
