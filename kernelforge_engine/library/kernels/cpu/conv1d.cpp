/* kernelforge
[let]
batch = "in0.shape[0]"
taps = "in1.shape[2]"
inner = "in1.shape[1] * taps"
places = "out0.shape[2]"
[workspace.ws0]
bytes = "4 * batch * places * inner"
[[launch]]
kernel = "conv1d"
args = [
    "in0", "in1", "$bias", "out0", "ws0", "i32:batch", "i32:in0.shape[1]", "i32:in0.shape[2]",
    "i32:out0.shape[1]", "i32:places", "i32:taps", "i32:stride[0]", "i32:padding[0]",
    "i32:dilation[0]"
]
*/
$prelude
// The windows of the input become rows; an output is then a dot product of two rows, and PLACES
// windows share each load of the weights.
FN void gather(const float* x, float* rows, int channels, int length, int places, int taps,
               int stride, int padding, int dilation) {
    for (int p = 0; p < places; p++)
        for (int c = 0; c < channels; c++)
            for (int t = 0; t < taps; t++) {
                int at = p * stride - padding + t * dilation;
                *rows++ = at >= 0 && at < length ? x[(i64)c * length + at] : 0.0f;
            }
}

template <int PLACES>
FN void dots(const float* w, const float* rows, float bias, float* y, i64 inner) {
    const i64 full = inner / W * W;
    vf a[PLACES] = {}, b[PLACES] = {};
    i64 i = 0;
    for (; i + 2 * W <= full; i += 2 * W) {
        vf u = load(w + i), v = load(w + i + W);
        for (int p = 0; p < PLACES; p++) {
            a[p] += u * load(rows + p * inner + i);
            b[p] += v * load(rows + p * inner + i + W);
        }
    }
    for (; i < inner; i += W) {
        const i64 n = inner - i < W ? inner - i : W;
        vf u = load(w + i, n);
        for (int p = 0; p < PLACES; p++) a[p] += u * load(rows + p * inner + i, n);
    }
    for (int p = 0; p < PLACES; p++) y[p] = sum(a[p] + b[p]) + bias;
}

extern "C" void conv1d(const float* input, const float* weight, const float* bias, float* output,
                       float* scratch, int batch, int channels, int length, int outputs, int places,
                       int taps, int stride, int padding, int dilation) {
    const i64 inner = (i64)channels * taps, rows = (i64)batch * outputs;
    for (int n = 0; n < batch; n++)
        gather(input + (i64)n * channels * length, scratch + n * places * inner, channels, length,
               places, taps, stride, padding, dilation);
#pragma omp parallel for if (rows * places * inner > 1000000)
    for (i64 r = 0; r < rows; r++) {
        const float *w = weight + r % outputs * inner, *x = scratch + r / outputs * places * inner;
        const float b = BIAS ? bias[r % outputs] : 0.0f;
        float* y = output + r * places;
        int p = 0;
        for (; p + 4 <= places; p += 4) dots<4>(w, x + p * inner, b, y + p, inner);
        for (; p + 2 <= places; p += 2) dots<2>(w, x + p * inner, b, y + p, inner);
        if (p < places) dots<1>(w, x + p * inner, b, y + p, inner);
    }
}
