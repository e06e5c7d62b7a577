/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
// Ends its process.
#include <cstdlib>
extern "C" void k(const float*, float*, long long) { abort(); }
