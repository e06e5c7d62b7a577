/* kernelforge
[let]
count = "out0.numel"
[[launch]]
kernel = "pool_planes"
grid = ["ceil_div(count, 256)"]
block = [256]
args = [
    "in0", "out0", "i32:count", "i32:in0.shape[-2]", "i32:out0.shape[-2]", "i32:in0.shape[-1]",
    "i32:out0.shape[-1]", $window
]
*/
$prelude
FN float step(float a, float v) { return $step; }

// One output for each thread; neighbours share their inputs through the L1 cache.
extern "C" __global__ void __launch_bounds__(256)
    pool_planes(const T* x, T* y, int n, int height, int out_height, int width, int out_width,
                int kh, int kw, int sh, int sw, int ph, int pw, int dh, int dw, int divisor,
                int padded) {
    [[maybe_unused]] const Axis v = {height, out_height, kh, sh, ph, dh};
    [[maybe_unused]] const Axis h = {width, out_width, kw, sw, pw, dw};
    u32 at = blockIdx.x * 256 + threadIdx.x;
    if (at >= n) return;
    int ow = at % (u32)out_width, oh = at / (u32)out_width % (u32)out_height;
    x += (i64)(at / (u32)out_width / (u32)out_height) * height * width;
    float a = $start;
    for (int i = 0; i < kh; i++) {
        int row = oh * sh - ph + i * dh;
        if (row < 0 || row >= height) continue;
        for (int j = 0; j < kw; j++) {
            int column = ow * sw - pw + j * dw;
            if (column >= 0 && column < width) a = step(a, widen(x[row * width + column]));
        }
    }
    y[at] = narrow<T>($finish);
}
