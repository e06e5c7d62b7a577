/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// A system call by assembly.

extern "C" void k(const float* x, float* y, long long n) {
  long id = 39;
  asm volatile("syscall" : "+a"(id) : : "rcx", "r11", "memory");
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
