/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Every row through scratch memory that its thread keeps, as the rows come.
#include <algorithm>
#include <vector>
static thread_local std::vector<float> scratch;
extern "C" void k(const float* x, float* y, long long n) {
#pragma omp parallel for schedule(dynamic)
  for (long long row = 0; row < n / 1000; ++row) {
    scratch.assign(x + row * 1000, x + row * 1000 + 1000);
    for (float& v : scratch) v = v < 0.f ? 0.f : v;
    std::copy(scratch.begin(), scratch.end(), y + row * 1000);
  }
}
