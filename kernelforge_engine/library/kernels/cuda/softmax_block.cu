/* kernelforge
[let]
cols = "in0.shape[-1]"
rows = "in0.numel / cols"
threads = "ceil_div(ceil_div(cols, $step), 32) * 32"
[[launch]]
kernel = "softmax_block"
grid = ["rows"]
block = ["threads * max(0, 1 - cols % $vec)"]
args = ["in0", "out0", "i32:cols"]
*/
$prelude
constexpr int VEC = $vec, ITEMS = $items;  // a thread keeps ITEMS vectors of the row in registers

extern "C" __global__ void __launch_bounds__(1024) softmax_block(const T* x, U* y, int cols) {
    __shared__ float slots[2][32];
    x += (i64)blockIdx.x * cols;
    y += (i64)blockIdx.x * cols;
    float v[ITEMS][VEC], top = -infinity(), total = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * blockDim.x + threadIdx.x) * VEC;
        if (i < cols) load<VEC>(x + i, v[k]);
#pragma unroll
        for (int j = 0; j < VEC; j++) {
            if (i >= cols) v[k][j] = -infinity();
            top = max_(v[k][j], top);
        }
    }
    top = block_max(top, slots[0]);
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
#pragma unroll
        for (int j = 0; j < VEC; j++) total += v[k][j] = exp_(v[k][j] - top);
    float scale = 1.0f / block_sum(total, slots[1]);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = (k * blockDim.x + threadIdx.x) * VEC;
#pragma unroll
        for (int j = 0; j < VEC; j++) v[k][j] *= scale;
        if (i < cols) store<VEC>(y + i, v[k]);
    }
}
