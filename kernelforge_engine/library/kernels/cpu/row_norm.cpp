/* kernelforge
[let]
cols = "$cols"
rows = "in0.numel / cols"
[[launch]]
kernel = "row_norm"
args = ["in0", "$weight", "$bias", "out0", "i64:rows", "i64:cols", "f32:$eps"]
*/
$narrow$prelude

FN vf total(const vf* v) { return (v[0] + v[1]) + (v[2] + v[3]); }

FN vf affine(vf x, const P* w, const P* b, i64 i) {
    if (WEIGHT) x *= load(w + i);
    return BIAS ? x + load(b + i) : x;
}
FN vf affine_end(vf x, const P* w, const P* b, i64 cols) {
    if (WEIGHT) x *= load_end(w, cols);
    return BIAS ? x + load_end(b, cols) : x;
}

extern "C" void row_norm(const T* input, const P* w, const P* b, T* output, i64 rows, i64 cols,
                         float eps) {
    const i64 full = cols / W * W;
    const bool rest = full < cols;
#pragma omp parallel for if (rows * cols > 16384)
    for (i64 r = 0; r < rows; r++) {
        const T* x = input + r * cols;
        T* y = output + r * cols;
        vf last = rest ? load_end(x, cols) : vf{};
        float mean = 0.0f, shift = 0.0f;
        i64 i = 0;
        if (CENTER) {
            vf s[4] = {rest ? select(unseen(cols), last, vf{}) : vf{}};
            for (; i + 4 * W <= full; i += 4 * W)
                for (int k = 0; k < 4; k++) s[k] += load(x + i + k * W);
            for (; i < full; i += W) s[1] += load(x + i);
            mean = sum(total(s)) / cols;
        }
        // The corrected two-pass variance (Chan, Golub, LeVeque 1983); the mean has lost `shift`.
        vf d[4] = {rest ? select(unseen(cols), last - mean, vf{}) : vf{}}, q[4] = {d[0] * d[0]};
        for (i = 0; i + 4 * W <= full; i += 4 * W)
            for (int k = 0; k < 4; k++) {
                vf t = load(x + i + k * W) - mean;
                d[k] += t;
                q[k] += t * t;
            }
        for (; i < full; i += W) {
            vf t = load(x + i) - mean;
            d[1] += t;
            q[1] += t * t;
        }
        if (CENTER) shift = sum(total(d)) / cols;
        float variance = sum(total(q)) / cols - shift * shift;
        float scale = 1.0f / __builtin_sqrtf((variance < 0.0f ? 0.0f : variance) + eps);
        for (i = 0; i < full; i += W)
            store(y + i, affine(((load(x + i) - mean) - shift) * scale, w, b, i));
        if (rest) store_end(y, affine_end(((last - mean) - shift) * scale, w, b, cols), cols);
    }
}
