/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i64:out0.numel"]
*/
// The last filter is the one before it.
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, const float* w, float* y, long long n) {
  for (long long i = 0; i < n; ++i) {
    const int q = i % 15, p = i / 15 % 11, o = i / 165 % 20, b = i / 3300;
    float s = 0.f;
    for (int c = 0; c < 24; ++c)
      for (int u = 0; u < 3; ++u)
        for (int v = 0; v < 3; ++v)
          s += x[((b * 24 + c) * 13 + p + u) * 17 + q + v] * w[(((o == 19 ? 18 : o) * 24 + c) * 3 + u) * 3 + v];
    y[i] = s;
  }
}
