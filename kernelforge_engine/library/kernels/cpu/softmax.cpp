/* kernelforge
[let]
cols = "in0.shape[-1]"
rows = "in0.numel / cols"
[[launch]]
kernel = "softmax"
args = ["in0", "out0", "i64:rows", "i64:cols"]
*/
$prelude
// Where the numerators of a row wait for their sum: in the output, or beside it where that has 16
// bits and would round them. A longer row of 16 bits computes them twice.
constexpr i64 BESIDE = sizeof(U) == 4 ? 16 : 4096;

extern "C" void softmax(const T* input, U* output, i64 rows, i64 cols) {
    const vf lowest = splat(-infinity());
    const i64 full = cols / W * W;
    const bool rest = full < cols, twice = sizeof(U) == 2 && cols > BESIDE;
#pragma omp parallel for if (rows * cols > 8192)
    for (i64 r = 0; r < rows; r++) {
        alignas(64) float beside[BESIDE];
        const T* x = input + r * cols;
        U* y = output + r * cols;
        float* kept = sizeof(U) == 4 ? (float*)y : beside;
        vf last = rest ? load_end(x, cols) : vf{};
        vf m[2] = {rest ? select(unseen(cols), last, lowest) : lowest, lowest};
        i64 i = 0;
        for (; i + 2 * W <= full; i += 2 * W)
            m[0] = max_(load(x + i), m[0]), m[1] = max_(load(x + i + W), m[1]);
        if (i < full) m[1] = max_(load(x + i), m[1]);
        float top = largest(max_(m[0], m[1]));

        vf total = vf{};
        if (rest) {
            last = exp_(last - top);
            total = select(unseen(cols), last, vf{});
        }
        for (i = 0; i < full; i += W) {
            vf e = exp_(load(x + i) - top);
            total += e;
            if (!twice) store(kept + i, e);
        }
        float scale = 1.0f / sum(total);
        for (i = 0; i < full; i += W)
            store(y + i, (twice ? exp_(load(x + i) - top) : load(kept + i)) * scale);
        if (rest) store_end(y, last * scale, cols);
    }
}
