/* kernelforge
[[launch]]
kernel = "unary"
args = ["in0", "out0", "i64:in0.numel"$args]
*/
$narrow$prelude
FN vf apply(vf x$params) { return $expression; }

extern "C" void unary(const T* x, U* y, i64 n$params) {
    constexpr i64 CHUNK = 8192;
    i64 chunks = (n + CHUNK - 1) / CHUNK;
#pragma omp parallel for if (chunks > $serial)
    for (i64 c = 0; c < chunks; c++) {
        i64 i = c * CHUNK, end = i + CHUNK < n ? i + CHUNK : n;
        for (; i + W <= end; i += W) store(y + i, apply(load(x + i)$values));
        if (i < end) store(y + i, apply(load(x + i, end - i)$values), end - i);
    }
}
