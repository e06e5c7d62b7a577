/* kernelforge
[[launch]]
kernel = "binary"
args = ["in0", "in1", "out0", "i64:in0.numel"$args]
*/
$narrow$prelude
FN vf apply(vf a, vf b$params) { return $expression; }

extern "C" void binary(const T* a, const T* b, T* y, i64 n$params) {
    constexpr i64 CHUNK = 8192;
    i64 chunks = (n + CHUNK - 1) / CHUNK;
#pragma omp parallel for if (chunks > 4)
    for (i64 c = 0; c < chunks; c++) {
        i64 i = c * CHUNK, end = i + CHUNK < n ? i + CHUNK : n;
        for (; i + W <= end; i += W) store(y + i, apply(load(a + i), load(b + i)$values));
        i64 rest = end - i;
        if (rest > 0) store(y + i, apply(load(a + i, rest), load(b + i, rest)$values), rest);
    }
}
