/* kernelforge
[let]
rows = "out0.numel"
cols = "in0.numel / rows"
[[launch]]
kernel = "row_mean_warp"
grid = ["ceil_div(rows, $rows_per_block)"]
block = ["$lanes * max(0, 1 - cols % $vec)", $rows_per_block]
args = ["in0", "out0", "i64:rows", "i32:cols"]
*/
$prelude
constexpr int VEC = $vec, LANE = $lanes;  // lanes that share a row

extern "C" __global__ void __launch_bounds__(256)
    row_mean_warp(const T* x, T* y, i64 rows, int cols) {
    i64 row = (i64)blockIdx.x * blockDim.y + threadIdx.y;
    float total = 0.0f, v[VEC];
    if (row < rows)
        for (int i = threadIdx.x * VEC; i < cols; i += LANE * VEC) {
            load<VEC>(x + row * cols + i, v);
#pragma unroll
            for (int j = 0; j < VEC; j++) total += v[j];
        }
#pragma unroll
    for (int s = LANE / 2; s; s /= 2) total += __shfl_xor_sync(WARP, total, s);
    if (threadIdx.x == 0 && row < rows) y[row] = narrow<T>(total / cols);
}
