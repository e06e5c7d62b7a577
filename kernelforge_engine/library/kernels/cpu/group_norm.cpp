/* kernelforge
[let]
groups = "in0.shape[0] * num_groups"
channels = "in0.shape[1] / num_groups"
plane = "in0.numel / (in0.shape[0] * in0.shape[1])"
[[launch]]
kernel = "group_norm"
args = [
    "in0", "$weight", "$bias", "out0", "i64:groups", "i64:num_groups", "i64:channels",
    "i64:plane", "f32:eps"
]
*/
$prelude

// Sums of x - mean and of its square: floats within a block, doubles across blocks.
FN void sums(const T* x, i64 n, float mean, double& first, double& second) {
    constexpr i64 BLOCK = 4096;
    first = second = 0.0;
    for (i64 at = 0; at < n; at += BLOCK) {
        i64 i = at, end = at + BLOCK < n ? at + BLOCK : n;
        vf d[2] = {}, q[2] = {};
        for (; i + 2 * W <= end; i += 2 * W)
            for (int k = 0; k < 2; k++) {
                vf t = load(x + i + k * W) - mean;
                d[k] += t;
                q[k] += t * t;
            }
        for (; i < end; i += W) {
            vf t = end - i < W ? load(x + i, end - i) : load(x + i);
            t = select(lanes() < (int)(end - i), t - mean, vf{});
            d[0] += t;
            q[0] += t * t;
        }
        first += sum(d[0] + d[1]);
        second += sum(q[0] + q[1]);
    }
}

extern "C" void group_norm(const T* input, const P* w, const P* b, T* output, i64 groups,
                           i64 num_groups, i64 channels, i64 plane, float eps) {
    const i64 size = channels * plane;
#pragma omp parallel for if (groups * size > 16384)
    for (i64 g = 0; g < groups; g++) {
        double first, second;
        sums(input + g * size, size, 0.0f, first, second);
        float mean = (float)(first / size);
        // The corrected two-pass variance (Chan, Golub, LeVeque 1983).
        sums(input + g * size, size, mean, first, second);
        float shift = (float)(first / size);
        float scale = (float)(1.0 / __builtin_sqrt((second - first * shift) / size + eps));
        for (i64 c = 0; c < channels; c++) {
            i64 channel = g % num_groups * channels + c;
            const T* x = input + g * size + c * plane;
            T* y = output + g * size + c * plane;
            vf gain = splat(WEIGHT ? scale * load(w + channel, 1)[0] : scale);
            vf bias = splat(BIAS ? load(b + channel, 1)[0] : 0.0f);
            i64 i = 0;
            for (; i + W <= plane; i += W)
                store(y + i, ((load(x + i) - mean) - shift) * gain + bias);
            i64 rest = plane - i;
            if (rest > 0) store(y + i, ((load(x + i, rest) - mean) - shift) * gain + bias, rest);
        }
    }
}
