/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:out0.numel"]
*/
// Reduces by powers of two, then seven terms.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const float v = x[i];
    if (!(v > -86.f && v < 88.f)) {
      y[i] = expf(v);
      continue;
    }
    const float q = nearbyintf(v * 1.44269504f);
    const float r = fmaf(q, -1.42860677e-6f, fmaf(q, -0.693145752f, v));
    float p = 1.f / 5040.f;
    p = fmaf(p, r, 1.f / 720.f);
    p = fmaf(p, r, 1.f / 120.f);
    p = fmaf(p, r, 1.f / 24.f);
    p = fmaf(p, r, 1.f / 6.f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.f);
    p = fmaf(p, r, 1.f);
    union { float f; int u; } scale;
    scale.u = ((int)q + 127) << 23;
    y[i] = p * scale.f;
  }
}
