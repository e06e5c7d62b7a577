/* kernelforge
[let]
cols = "$cols"
rows = "in0.numel / cols"
fits = "min(1, $limit / cols) * max(0, 1 - cols % $vec)"
[[launch]]
kernel = "row_norm_warp"
grid = ["ceil_div(rows, 4)"]
block = [32, "4 * fits"]
args = ["in0", "$weight", "$bias", "out0", "i64:rows", "i32:cols", "f32:$eps"]
*/
$prelude
constexpr int VEC = $vec, ITEMS = $items;  // a lane keeps ITEMS vectors of its row in registers

extern "C" __global__ void __launch_bounds__(128)
    row_norm_warp(const T* x, const P* w, const P* b, T* y, i64 rows, int cols, float eps) {
    i64 row = (i64)blockIdx.x * 4 + threadIdx.y;
    if (row >= rows) return;
    x += row * cols;
    y += row * cols;
    float v[ITEMS][VEC], mean = 0.0f, square = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * 32 + threadIdx.x) * VEC;
        if (i < cols) load<VEC>(x + i, v[k]);
        if (CENTER && i < cols)
#pragma unroll
            for (int j = 0; j < VEC; j++) mean += v[k][j];
    }
    if (CENTER) mean = warp_sum(mean) / cols;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
#pragma unroll
        for (int j = 0; j < VEC; j++) {
            v[k][j] -= mean;
            if ((k * 32 + threadIdx.x) * VEC < cols) square += v[k][j] * v[k][j];
        }
    float scale = 1.0f / sqrtf(warp_sum(square) / cols + eps);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * 32 + threadIdx.x) * VEC;
        if (i >= cols) break;
        float gain[VEC], shift[VEC];
        if (WEIGHT) load<VEC>(w + i, gain);
        if (BIAS) load<VEC>(b + i, shift);
#pragma unroll
        for (int j = 0; j < VEC; j++)
            v[k][j] = v[k][j] * scale * (WEIGHT ? gain[j] : 1.0f) + (BIAS ? shift[j] : 0.0f);
        store<VEC>(y + i, v[k]);
    }
}
