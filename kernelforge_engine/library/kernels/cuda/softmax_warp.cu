/* kernelforge
[let]
cols = "in0.shape[-1]"
rows = "in0.numel / cols"
fits = "min(1, $limit / cols) * max(0, 1 - cols % $vec)"
[[launch]]
kernel = "softmax_warp"
grid = ["ceil_div(rows, 4)"]
block = [32, "4 * fits"]
args = ["in0", "out0", "i64:rows", "i32:cols"]
*/
$prelude
constexpr int VEC = $vec, ITEMS = $items;  // a lane keeps ITEMS vectors of its row in registers

extern "C" __global__ void __launch_bounds__(128)
    softmax_warp(const T* x, U* y, i64 rows, int cols) {
    i64 row = (i64)blockIdx.x * 4 + threadIdx.y;
    if (row >= rows) return;
    x += row * cols;
    y += row * cols;
    float v[ITEMS][VEC], top = -infinity(), total = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * 32 + threadIdx.x) * VEC;
        if (i < cols) load<VEC>(x + i, v[k]);
#pragma unroll
        for (int j = 0; j < VEC; j++) {
            if (i >= cols) v[k][j] = -infinity();
            top = max_(v[k][j], top);
        }
    }
    top = warp_max(top);
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
#pragma unroll
        for (int j = 0; j < VEC; j++) total += v[k][j] = exp_(v[k][j] - top);
    float scale = 1.0f / warp_sum(total);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * 32 + threadIdx.x) * VEC;
#pragma unroll
        for (int j = 0; j < VEC; j++) v[k][j] *= scale;
        if (i < cols) store<VEC>(y + i, v[k]);
    }
}
