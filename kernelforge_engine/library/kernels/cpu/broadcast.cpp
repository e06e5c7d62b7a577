/* kernelforge
[let]
outer = "$outer"
middle = "$middle"
inner = "$inner"
[[launch]]
kernel = "broadcast"
args = ["$big", "$small", "out0", "i64:outer", "i64:middle", "i64:inner"$args]
*/
$narrow$prelude
FN vf apply(vf a, vf b$params) { return $expression; }
FN vf both(vf big, vf small$params) { return $call; }

// The small operand repeats along some of three axes: $pattern.

extern "C" void broadcast(const T* big, const T* small, T* y, i64 outer, i64 middle,
                          i64 inner$params) {
    constexpr i64 CHUNK = 8192;
    i64 chunks = (inner + CHUNK - 1) / CHUNK, tasks = outer * middle * chunks;
#pragma omp parallel for if (outer * middle * inner > 32768)
    for (i64 task = 0; task < tasks; task++) {
        i64 row = task / chunks, i = task % chunks * CHUNK;
        i64 end = i + CHUNK < inner ? i + CHUNK : inner;
        i64 at = (OUTER ? row / middle : 0) * (MIDDLE ? middle : 1) + (MIDDLE ? row % middle : 0);
        const T *a = big + row * inner, *b = small + at * (INNER ? inner : 1);
        T* out = y + row * inner;
        vf one = splat(load(b, 1)[0]);
        for (; i + W <= end; i += W)
            store(out + i, both(load(a + i), INNER ? load(b + i) : one$values));
        i64 rest = end - i;
        if (rest > 0)
            store(out + i, both(load(a + i, rest), INNER ? load(b + i, rest) : one$values), rest);
    }
}
