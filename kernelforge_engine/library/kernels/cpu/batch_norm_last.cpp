/* kernelforge
[let]
channels = "in0.shape[1]"
pixels = "in0.numel / channels"
[[launch]]
kernel = "batch_norm_last"
args = [
    "in0", "$weight", "$bias", "$mean", "$var", "out0", "ws0", "i64:pixels", "i64:channels",
    "f32:eps"
]
[workspace.ws0]
bytes = "4 * channels"
*/
$narrow$prelude

FN vf normal(vf x, vf mean, vf gain, vf bias) { return (x - mean) * gain + bias; }

extern "C" void batch_norm_last(const T* input, const P* w, const P* b, const P* mean, const P* var,
                                T* output, float* gain, i64 pixels, i64 channels, float eps) {
    for (i64 c = 0; c < channels; c++) {
        float scale = 1.0f / __builtin_sqrtf(load(var + c, 1)[0] + eps);
        gain[c] = WEIGHT ? scale * load(w + c, 1)[0] : scale;
    }
#pragma omp parallel for if (pixels * channels > 16384)
    for (i64 p = 0; p < pixels; p++) {
        const T* x = input + p * channels;
        T* y = output + p * channels;
        i64 c = 0;
        for (; c + W <= channels; c += W)
            store(y + c, normal(load(x + c), load(mean + c), load(gain + c),
                                BIAS ? load(b + c) : vf{}));
        i64 n = channels - c;
        if (n > 0)
            store(y + c, normal(load(x + c, n), load(mean + c, n), load(gain + c, n),
                                BIAS ? load(b + c, n) : vf{}), n);
    }
}
