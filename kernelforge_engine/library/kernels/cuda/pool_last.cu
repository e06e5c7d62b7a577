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
    "i32:in0.shape[3]", "i32:out0.shape[3]", $window
]
*/
$prelude
constexpr int VEC = $vec;
FN float step(float a, float v) { return $step; }

// Channels last: a thread pools VEC channels of one output pixel.
extern "C" __global__ void __launch_bounds__(256)
    pool_last(const T* x, T* y, int n, int channels, int height, int out_height, int width,
              int out_width, int kh, int kw, int sh, int sw, int ph, int pw, int dh, int dw,
              int divisor, int padded) {
    [[maybe_unused]] const Axis v = {height, out_height, kh, sh, ph, dh};
    [[maybe_unused]] const Axis h = {width, out_width, kw, sw, pw, dw};
    u32 at = (blockIdx.x * 256 + threadIdx.x) * VEC;
    if (at >= n) return;
    u32 pixel = at / (u32)channels, line = pixel / (u32)out_width;
    int ow = pixel % (u32)out_width, oh = line % (u32)out_height;
    x += (i64)(line / (u32)out_height) * height * width * channels + at % (u32)channels;
    float sum[VEC], in[VEC];
    for (int k = 0; k < VEC; k++) sum[k] = $start;
    for (int i = 0; i < kh; i++) {
        int row = oh * sh - ph + i * dh;
        if (row < 0 || row >= height) continue;
        for (int j = 0; j < kw; j++) {
            int column = ow * sw - pw + j * dw;
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
