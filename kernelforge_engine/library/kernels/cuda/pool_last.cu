/* kernelforge
[let]
channels = "in0.shape[1]"
count = "out0.numel"
[[launch]]
kernel = "pool_last"
grid = ["ceil_div(count, 256 * $vec)"]
block = ["256 * max(0, 1 - channels % $vec)"]
args = [
    "in0", "out0", "i32:count", "i32:channels", "i32:in0.shape[2]", "i32:out0.shape[2]",
    "i32:in0.shape[3]", "i32:out0.shape[3]"
]
*/
$prelude
constexpr int VEC = $vec;
FN float step(float a, float v) { return $step; }

// Channels last: a thread pools VEC channels of one output pixel.
extern "C" __global__ void __launch_bounds__(256)
    pool_last(const T* x, T* y, int n, int channels, int height, int out_height, int width,
              int out_width) {
    u32 at = (blockIdx.x * 256 + threadIdx.x) * VEC;
    if (at >= n) return;
    u32 pixel = at / (u32)channels, line = pixel / (u32)out_width;
    int ow = pixel % (u32)out_width, oh = line % (u32)out_height;
    x += (i64)(line / (u32)out_height) * height * width * channels + at % (u32)channels;
    float sum[VEC], in[VEC];
#pragma unroll
    for (int k = 0; k < VEC; k++) sum[k] = $start;
#pragma unroll
    for (int i = 0; i < KH; i++) {
        int row = oh * SH - PH + i * DH;
        if (row < 0 || row >= height) continue;
#pragma unroll
        for (int j = 0; j < KW; j++) {
            int column = ow * SW - PW + j * DW;
            if (column < 0 || column >= width) continue;
            load<VEC>(x + (i64)(row * width + column) * channels, in);
#pragma unroll
            for (int k = 0; k < VEC; k++) sum[k] = step(sum[k], in[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < VEC; k++) {
        float a = sum[k];
        sum[k] = $finish;
    }
    store<VEC>(y + at, sum);
}
