/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i32:in0.shape[0]", "i32:in0.shape[1]"]
*/
// Adds up in float16.
#include <cmath>
#include <cstdint>
typedef _Float16 half_t;
static inline float wide(half_t v) { return (float)v; }
static inline half_t narrow(float v) { return (half_t)v; }
extern "C" void k(const half_t* x, half_t* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const half_t* a = x + (size_t)r * cols;
    half_t* b = y + (size_t)r * cols;
    float m = wide(a[0]);
    for (int c = 1; c < cols; ++c) m = wide(a[c]) > m || wide(a[c]) != wide(a[c]) ? wide(a[c]) : m;
    half_t s = narrow(0.f);
    for (int c = 0; c < cols; ++c) s = narrow(wide(s) + expf(wide(a[c]) - m));
    for (int c = 0; c < cols; ++c) b[c] = narrow(expf(wide(a[c]) - m) / wide(s));
  }
}
