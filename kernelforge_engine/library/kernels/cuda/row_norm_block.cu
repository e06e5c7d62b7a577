/* kernelforge
[let]
cols = "$cols"
rows = "in0.numel / cols"
threads = "ceil_div(ceil_div(cols, $step), 32) * 32"
[[launch]]
kernel = "row_norm_block"
grid = ["rows"]
block = ["threads * max(0, 1 - cols % $vec)"]
args = ["in0", "$weight", "$bias", "out0", "i32:cols", "f32:$eps"]
*/
$prelude
constexpr int VEC = $vec, ITEMS = $items;  // a thread keeps ITEMS vectors of the row in registers

extern "C" __global__ void __launch_bounds__(1024)
    row_norm_block(const T* x, const P* w, const P* b, T* y, int cols, float eps) {
    __shared__ float slots[2][32];
    x += (i64)blockIdx.x * cols;
    y += (i64)blockIdx.x * cols;
    Raw<VEC, T> raw[ITEMS];
    float v[VEC], mean = 0.0f, square = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * blockDim.x + threadIdx.x) * VEC;
        if (i < cols) raw[k].load(x + i);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (!CENTER || (k * blockDim.x + threadIdx.x) * VEC >= cols) break;
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++) mean += v[j];
    }
    if (CENTER) mean = block_sum(mean, slots[0]) / cols;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if ((k * blockDim.x + threadIdx.x) * VEC >= cols) break;
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++) square += (v[j] - mean) * (v[j] - mean);
    }
    float scale = 1.0f / sqrtf(block_sum(square, slots[1]) / cols + eps);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * blockDim.x + threadIdx.x) * VEC;
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
