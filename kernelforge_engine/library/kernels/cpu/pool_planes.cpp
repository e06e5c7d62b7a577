/* kernelforge
[let]
height = "in0.shape[-2]"
width = "in0.shape[-1]"
planes = "in0.numel / (height * width)"
[[launch]]
kernel = "pool_planes"
args = [
    "in0", "out0", "ws0", "i64:planes", "i32:height", "i32:out0.shape[-2]", "i32:width",
    "i32:out0.shape[-1]", $window
]
[workspace.ws0]
bytes = "4 * planes * (width + out0.shape[-1])"
*/
$prelude
FN float step(float a, float v) { return $step; }

// x[0], x[s], ... into acc[0], acc[1], ...
template <int STRIDE> FN void across(float* acc, const float* x, int n, int stride) {
    const i64 s = STRIDE ? STRIDE : stride;
#pragma omp simd
    for (int o = 0; o < n; o++) acc[o] = step(acc[o], x[o * s]);
}

FN const float* as_float(const float* x, float*, int) { return x; }
template <class S> FN const float* as_float(const S* x, float* buffer, int n) {
    int i = 0;
    for (; i + W <= n; i += W) store(buffer + i, load(x + i));
    if (i < n) store(buffer + i, load(x + i, n - i), n - i);
    return buffer;
}

FN void add_row(float* acc, const float* row, Axis h) {
    for (int j = 0; j < h.kernel; j++) {
        int shift = j * h.dilation - h.pad;
        int first = shift < 0 ? (h.stride - 1 - shift) / h.stride : 0;
        int last = (h.size - shift + h.stride - 1) / h.stride;
        int n = (last < h.out ? last : h.out) - first;
        const float* x = row + first * h.stride + shift;
        if (h.stride == 1) across<1>(acc + first, x, n, 1);
        else if (h.stride == 2) across<2>(acc + first, x, n, 2);
        else across<0>(acc + first, x, n, h.stride);
    }
}

extern "C" void pool_planes(const T* input, T* output, float* scratch, i64 planes, int height,
                            int out_height, int width, int out_width, int kh, int kw, int sh,
                            int sw, int ph, int pw, int dh, int dw, int divisor, int padded) {
    [[maybe_unused]] const Axis v = {height, out_height, kh, sh, ph, dh};
    [[maybe_unused]] const Axis h = {width, out_width, kw, sw, pw, dw};
#pragma omp parallel for if (planes * out_height * out_width > 2048)
    for (i64 p = 0; p < planes; p++) {
        const T* x = input + p * height * width;
        float *acc = scratch + p * (width + out_width), *buffer = acc + out_width;
        for (int oh = 0; oh < out_height; oh++) {
            for (int ow = 0; ow < out_width; ow++) acc[ow] = $start;
            for (int i = 0; i < kh; i++) {
                int row = oh * sh - ph + i * dh;
                if (row >= 0 && row < height)
                    add_row(acc, as_float(x + (i64)row * width, buffer, width), h);
            }
            for (int ow = 0; ow < out_width; ow++) {
                float a = acc[ow];
                acc[ow] = $finish;
            }
            T* y = output + (p * out_height + oh) * out_width;
            int i = 0;
            for (; i + W <= out_width; i += W) store(y + i, load(acc + i));
            if (i < out_width) store(y + i, load(acc + i, out_width - i), out_width - i);
        }
    }
}
