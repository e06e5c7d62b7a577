/* kernelforge
[let]
height = "in0.shape[-2]"
width = "in0.shape[-1]"
planes = "in0.numel / (height * width)"
[[launch]]
kernel = "pool_planes"
args = [
    "in0", "out0", "ws0", "i64:planes", "i32:height", "i32:out0.shape[-2]", "i32:width",
    "i32:out0.shape[-1]"
]
[workspace.ws0]
bytes = "4 * planes * (width + out0.shape[-1])"
*/
$prelude
FN float step(float a, float v) { return $step; }

FN const float* as_float(const float* x, float*, int) { return x; }
template <class S> FN const float* as_float(const S* x, float* buffer, int n) {
    int i = 0;
    for (; i + W <= n; i += W) store(buffer + i, load(x + i));
    if (i < n) store(buffer + i, load(x + i, n - i), n - i);
    return buffer;
}

// One row of the input into all outputs whose window it crosses, a column of the window at a time.
FN void add_row(float* acc, const float* row, int width, int out_width) {
    for (int j = 0; j < KW; j++) {
        const int shift = j * DW - PW;
        const int first = shift < 0 ? (SW - 1 - shift) / SW : 0;
        const int last = (width - shift + SW - 1) / SW, n = last < out_width ? last : out_width;
#pragma omp simd
        for (int o = first; o < n; o++) acc[o] = step(acc[o], row[o * SW + shift]);
    }
}

extern "C" void pool_planes(const T* input, T* output, float* scratch, i64 planes, int height,
                            int out_height, int width, int out_width) {
#pragma omp parallel for if (planes * out_height * out_width > 2048)
    for (i64 p = 0; p < planes; p++) {
        const T* x = input + p * height * width;
        float *acc = scratch + p * (width + out_width), *buffer = acc + out_width;
        for (int oh = 0; oh < out_height; oh++) {
            for (int ow = 0; ow < out_width; ow++) acc[ow] = $start;
            for (int i = 0; i < KH; i++) {
                int row = oh * SH - PH + i * DH;
                if (row >= 0 && row < height)
                    add_row(acc, as_float(x + (i64)row * width, buffer, width), width, out_width);
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
