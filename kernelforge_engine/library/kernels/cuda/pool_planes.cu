/* kernelforge
[let]
count = "out0.numel"
[[launch]]
kernel = "pool_planes"
grid = ["ceil_div(count, 256)"]
block = [256]
args = [
    "in0", "out0", "i32:count", "i32:in0.shape[-2]", "i32:out0.shape[-2]", "i32:in0.shape[-1]",
    "i32:out0.shape[-1]"
]
*/
$prelude
FN float step(float a, float v) { return $step; }

// One output for each thread; neighbours share their inputs through the L1 cache.
extern "C" __global__ void __launch_bounds__(256)
    pool_planes(const T* x, T* y, int n, int height, int out_height, int width, int out_width) {
    u32 at = blockIdx.x * 256 + threadIdx.x;
    if (at >= n) return;
    int ow = at % (u32)out_width, oh = at / (u32)out_width % (u32)out_height;
    x += (i64)(at / (u32)out_width / (u32)out_height) * height * width;
    float a = $start;
#pragma unroll
    for (int i = 0; i < KH; i++) {
        int row = oh * SH - PH + i * DH;
        if (row < 0 || row >= height) continue;
#pragma unroll
        for (int j = 0; j < KW; j++) {
            int column = ow * SW - PW + j * DW;
            if (column >= 0 && column < width) a = step(a, widen(x[row * width + column]));
        }
    }
    y[at] = narrow<T>($finish);
}
