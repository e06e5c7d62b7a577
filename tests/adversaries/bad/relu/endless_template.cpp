/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// A template that never ends.
template <int N> struct Deep { static constexpr int value = Deep<N + 1>::value; };
static int deep = Deep<0>::value;
extern "C" void k(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
