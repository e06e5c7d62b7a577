/* kernelforge
[let]
outer = "$outer"
middle = "$middle"
inner = "$inner"
count = "out0.numel"
[[launch]]
kernel = "broadcast"
grid = ["ceil_div(count, $tile)"]
block = [256]
args = ["$big", "$small", "out0", "i32:count", "i32:middle", "i32:inner"$args]
*/
$prelude
constexpr int VEC = $vec, DEEP = $deep;

FN float apply(float a, float b$params) { return $expression; }
FN float both(float big, float small$params) { return $call; }

// The small operand repeats along some of three axes: $pattern.
FN u32 place(u32 i, u32 middle, u32 inner) {
    u32 row = i / inner, at = 0;
    if (OUTER) at = row / middle;
    if (MIDDLE) at = at * middle + row % middle;
    return INNER ? at * inner + i % inner : at;
}

extern "C" __global__ void __launch_bounds__(256)
    broadcast(const T* big, const T* small, T* y, int n, int middle, int inner$params) {
    constexpr int STEP = 256 * VEC;
    u32 first = blockIdx.x * STEP * DEEP + threadIdx.x * VEC;
    Raw<VEC, T> raw[DEEP];
#pragma unroll
    for (int k = 0; k < DEEP; k++)
        if (first + k * STEP + VEC <= n) raw[k].load(big + first + k * STEP);
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
        u32 i = first + k * STEP;
        if (i + VEC > n) {
            for (; i < n && i < first + k * STEP + VEC; i++)
                y[i] = narrow<T>(both(widen(big[i]), widen(small[place(i, middle, inner)])$values));
            continue;
        }
        float u[VEC], v[VEC];
        raw[k].open(u);
        if (inner % VEC) {
#pragma unroll
            for (int j = 0; j < VEC; j++) v[j] = widen(small[place(i + j, middle, inner)]);
        } else if (INNER) {
            load<VEC>(small + place(i, middle, inner), v);
        } else {
            v[0] = widen(small[place(i, middle, inner)]);
#pragma unroll
            for (int j = 1; j < VEC; j++) v[j] = v[0];
        }
#pragma unroll
        for (int j = 0; j < VEC; j++) u[j] = both(u[j], v[j]$values);
        store<VEC>(y + i, u);
    }
}
