/* kernelforge
[let]
count = "in0.numel"
tiles = "ceil_div(count, $tile)"
[[launch]]
kernel = "unary"
grid = ["$grid"]
block = [256]
args = ["in0", "out0", "i64:count"$args]
*/
$prelude
constexpr int VEC = $vec, DEEP = $deep;  // a thread has DEEP vectors of VEC values in flight

FN float apply(float x$params) { return $expression; }

extern "C" __global__ void __launch_bounds__(256) unary(const T* x, U* y, i64 n$params) {
    constexpr i64 STEP = 256 * VEC, TILE = STEP * DEEP;
    for (i64 tile = blockIdx.x * TILE; tile < n; tile += gridDim.x * TILE) {
        i64 first = tile + threadIdx.x * VEC;
        Raw<VEC, T> raw[DEEP];
#pragma unroll
        for (int k = 0; k < DEEP; k++)
            if (first + k * STEP + VEC <= n) raw[k].load(x + first + k * STEP);
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            i64 i = first + k * STEP;
            if (i + VEC <= n) {
                float v[VEC];
                raw[k].open(v);
#pragma unroll
                for (int j = 0; j < VEC; j++) v[j] = apply(v[j]$values);
                store<VEC>(y + i, v);
            } else {
                for (; i < n && i < first + k * STEP + VEC; i++)
                    y[i] = narrow<U>(apply(widen(x[i])$values));
            }
        }
    }
}
