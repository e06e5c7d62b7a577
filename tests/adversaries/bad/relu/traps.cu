/* kernelforge
[[launch]]
kernel = "k"
grid = [1]
block = [1]
args = ["in0", "out0", "i64:in0.numel"]
*/
// Ends its process.
extern "C" __global__ void k(const float*, float*, long long) { __trap(); }
