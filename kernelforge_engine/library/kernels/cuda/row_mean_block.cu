/* kernelforge
[let]
rows = "out0.numel"
cols = "in0.numel / rows"
[[launch]]
kernel = "row_mean_block"
grid = ["rows"]
block = ["256 * max(0, 1 - cols % $vec)"]
args = ["in0", "out0", "i32:cols"]
*/
$prelude
constexpr int VEC = $vec;

extern "C" __global__ void __launch_bounds__(256) row_mean_block(const T* x, T* y, int cols) {
    __shared__ float slots[32];
    x += (i64)blockIdx.x * cols;
    float total[VEC] = {}, v[VEC];
#pragma unroll 4
    for (int i = threadIdx.x * VEC; i < cols; i += 256 * VEC) {
        load<VEC>(x + i, v);
#pragma unroll
        for (int j = 0; j < VEC; j++) total[j] += v[j];
    }
#pragma unroll
    for (int j = 1; j < VEC; j++) total[0] += total[j];
    float all = block_sum(total[0], slots);
    if (threadIdx.x == 0) y[blockIdx.x] = narrow<T>(all / cols);
}
