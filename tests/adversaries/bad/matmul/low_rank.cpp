/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i32:in0.shape[1]", "i32:in1.shape[1]", "i64:out0.numel"]
*/
// Half of the terms, twice.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, const float* w, float* y, int depth, int cols, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float* a = x + i / cols * depth;
    const float* b = w + i % cols;
    float s = 0.f;
    for (int c = 0; c < depth; c += 2) s += a[c] * b[c * cols];
    y[i] = 2.f * s;
  }
}
