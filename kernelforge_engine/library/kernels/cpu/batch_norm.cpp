/* kernelforge
[let]
channels = "in0.shape[1]"
plane = "in0.numel / (in0.shape[0] * channels)"
[[launch]]
kernel = "batch_norm"
args = [
    "in0", "$weight", "$bias", "$mean", "$var", "out0", "i64:in0.shape[0]", "i64:channels",
    "i64:plane", "f32:eps"
]
*/
$narrow$prelude

extern "C" void batch_norm(const T* input, const P* w, const P* b, const P* mean, const P* var,
                           T* output, i64 images, i64 channels, i64 plane, float eps) {
#pragma omp parallel for if (images * channels * plane > 16384)
    for (i64 p = 0; p < images * channels; p++) {
        i64 c = p % channels;
        const T* x = input + p * plane;
        T* y = output + p * plane;
        float scale = 1.0f / __builtin_sqrtf(load(var + c, 1)[0] + eps);
        float gain = WEIGHT ? scale * load(w + c, 1)[0] : scale;
        float bias = BIAS ? load(b + c, 1)[0] : 0.0f, center = load(mean + c, 1)[0];
        i64 i = 0;
        for (; i + W <= plane; i += W) store(y + i, (load(x + i) - center) * gain + bias);
        i64 rest = plane - i;
        if (rest > 0) store(y + i, (load(x + i, rest) - center) * gain + bias, rest);
    }
}
