/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Calls a library of the system.
extern "C" void cblas_saxpy(int, float, const float*, int, float*, int);
extern "C" void k(const float* x, float* y, long long n) {
  cblas_saxpy((int)n, 1.f, x, 1, y, 1);
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
