/* kernelforge
[let]
rows = "out0.numel"
cols = "in0.numel / rows"
[[launch]]
kernel = "row_mean"
args = ["in0", "out0", "i64:rows", "i64:cols"]
*/
$narrow$prelude
// Floats within a block of the row, doubles across blocks.
FN double total(const T* x, i64 n) {
    constexpr i64 BLOCK = 4096;
    vf last = n % W ? select(unseen(n), load_end(x, n), vf{}) : vf{};
    double all = sum(last);
    for (i64 at = 0; at + W <= n; at += BLOCK) {
        i64 i = at, end = at + BLOCK < n ? at + BLOCK : n;
        vf s[4] = {};
        for (; i + 4 * W <= end; i += 4 * W)
            for (int k = 0; k < 4; k++) s[k] += load(x + i + k * W);
        for (; i + W <= end; i += W) s[0] += load(x + i);
        all += sum((s[0] + s[1]) + (s[2] + s[3]));
    }
    return all;
}

extern "C" void row_mean(const T* x, T* y, i64 rows, i64 cols) {
#pragma omp parallel for if (rows * cols > 32768)
    for (i64 r = 0; r < rows; r++) {
        float mean = (float)(total(x + r * cols, cols) / cols);
        store(y + r, splat(mean), 1);
    }
}
