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
    Raw<VEC, T> raw[ITEMS];
    float v[VEC], mean = 0.0f, square = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * 32 + threadIdx.x) * VEC;
        if (i < cols) raw[k].load(x + i);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (!CENTER || (k * 32 + threadIdx.x) * VEC >= cols) break;
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++) mean += v[j];
    }
    if (CENTER) mean = warp_sum(mean) / cols;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if ((k * 32 + threadIdx.x) * VEC >= cols) break;
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++) square += (v[j] - mean) * (v[j] - mean);
    }
    float scale = 1.0f / sqrtf(warp_sum(square) / cols + eps);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * 32 + threadIdx.x) * VEC;
        if (i >= cols) break;
        float gain[VEC], shift[VEC];
        if (WEIGHT) load<VEC>(w + i, gain);
        if (BIAS) load<VEC>(b + i, shift);
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++)
            v[j] = (v[j] - mean) * scale * (WEIGHT ? gain[j] : 1.0f) + (BIAS ? shift[j] : 0.0f);
        store<VEC>(y + i, v);
    }
}
