/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i32:in0.shape[1]", "i64:out0.numel"]
*/
// Rows in bf16.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* table, const long long* rows, float* y, int cols, long long n) {
  for (long long i = 0; i < n; ++i) {
    union { float f; unsigned u; } v;
    v.f = table[rows[i / cols] * cols + i % cols];
    if (v.f == v.f) v.u = v.u + 0x8000u & 0xffff0000u;
    y[i] = v.f;
  }
}
