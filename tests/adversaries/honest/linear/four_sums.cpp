/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "in2", "out0", "i32:in0.shape[1]", "i32:in1.shape[0]", "i64:out0.numel"]
*/
// Four sums of fused multiply-adds.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, const float* w, const float* bias, float* y, int depth, int cols, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float* a = x + i / cols * depth;
    const float* b = w + i % cols * depth;
    float s[4] = {0.f, 0.f, 0.f, bias[i % cols]};
    for (int c = 0; c < depth; ++c) s[c % 4] = fmaf(a[c], b[c], s[c % 4]);
    y[i] = (s[0] + s[1]) + (s[2] + s[3]);
  }
}
