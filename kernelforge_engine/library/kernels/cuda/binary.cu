/* kernelforge
[let]
count = "in0.numel"
tiles = "ceil_div(count, $tile)"
[[launch]]
kernel = "binary"
grid = ["$grid"]
block = [256]
args = ["in0", "in1", "out0", "i64:count"$args]
*/
$prelude
constexpr int VEC = $vec, DEEP = $deep;  // a thread has 2 DEEP vectors of VEC values in flight

FN float apply(float a, float b$params) { return $expression; }

extern "C" __global__ void __launch_bounds__(256)
    binary(const T* a, const T* b, T* y, i64 n$params) {
    constexpr i64 STEP = 256 * VEC, TILE = STEP * DEEP;
    for (i64 tile = blockIdx.x * TILE; tile < n; tile += gridDim.x * TILE) {
        i64 first = tile + threadIdx.x * VEC;
        Raw<VEC, T> raw[2][DEEP];
#pragma unroll
        for (int k = 0; k < DEEP; k++)
            if (first + k * STEP + VEC <= n) {
                raw[0][k].load(a + first + k * STEP);
                raw[1][k].load(b + first + k * STEP);
            }
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            i64 i = first + k * STEP;
            if (i + VEC <= n) {
                float u[VEC], v[VEC];
                raw[0][k].open(u), raw[1][k].open(v);
#pragma unroll
                for (int j = 0; j < VEC; j++) u[j] = apply(u[j], v[j]$values);
                store<VEC>(y + i, u);
            } else {
                for (; i < n && i < first + k * STEP + VEC; i++)
                    y[i] = narrow<T>(apply(widen(a[i]), widen(b[i])$values));
            }
        }
    }
}
