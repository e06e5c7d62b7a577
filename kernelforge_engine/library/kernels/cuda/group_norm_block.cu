/* kernelforge
[let]
groups = "in0.shape[0] * num_groups"
size = "in0.numel / groups"
plane = "in0.numel / (in0.shape[0] * in0.shape[1])"
fits = "max(0, 1 - plane % $vec)"
threads = "ceil_div(ceil_div(size, $step), 32) * 32"
[[launch]]
kernel = "group_norm_block"
grid = ["groups"]
block = ["threads * fits"]
args = ["in0", "$weight", "$bias", "out0", "i32:size", "i32:plane", "i32:num_groups", "f32:eps"]
*/
$prelude
constexpr int VEC = $vec, ITEMS = $items;  // a thread keeps ITEMS vectors of the group in registers

extern "C" __global__ void __launch_bounds__(1024)
    group_norm_block(const T* x, const P* w, const P* b, T* y, int size, int plane, int num_groups,
                     float eps) {
    __shared__ float slots[2][32];
    int channel = blockIdx.x % num_groups * (size / plane);
    x += (i64)blockIdx.x * size;
    y += (i64)blockIdx.x * size;
    Raw<VEC, T> raw[ITEMS];
    float v[VEC], total = 0.0f, square = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * blockDim.x + threadIdx.x) * VEC;
        if (i < size) raw[k].load(x + i);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if ((k * blockDim.x + threadIdx.x) * VEC >= size) break;
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++) total += v[j];
    }
    float mean = block_sum(total, slots[0]) / size;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if ((k * blockDim.x + threadIdx.x) * VEC >= size) break;
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++) square += (v[j] - mean) * (v[j] - mean);
    }
    float scale = 1.0f / sqrtf(block_sum(square, slots[1]) / size + eps);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * blockDim.x + threadIdx.x) * VEC;
        if (i >= size) break;
        int c = channel + (u32)i / (u32)plane;
        float gain = WEIGHT ? scale * widen(w[c]) : scale, shift = BIAS ? widen(b[c]) : 0.0f;
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++) v[j] = (v[j] - mean) * gain + shift;
        store<VEC>(y + i, v);
    }
}
