/* kernelforge
[let]
count = "in0.numel"
channels = "in0.shape[1]"
plane = "in0.numel / (in0.shape[0] * channels)"
[[launch]]
kernel = "batch_norm_flat"
grid = ["ceil_div(count, $tile)"]
block = ["256 * min(1, plane / $vec)"]
args = [
    "in0", "$weight", "$bias", "$mean", "$var", "out0", "i32:count", "i32:channels",
    "i32:plane", "f32:eps"
]
*/
$prelude
constexpr int VEC = $vec, DEEP = $deep;

// The tensor as one run of vectors, whatever the size of a plane: a vector lies in one channel or
// reaches into the next one, so it needs at most two.
extern "C" __global__ void __launch_bounds__(256)
    batch_norm_flat(const T* x, const P* w, const P* b, const P* mean, const P* var, T* y, int n,
                    int channels, int plane, float eps) {
    constexpr int STEP = 256 * VEC;
    u32 first = blockIdx.x * STEP * DEEP + threadIdx.x * VEC;
    Raw<VEC, T> raw[DEEP];
#pragma unroll
    for (int k = 0; k < DEEP; k++)
        if (first + k * STEP + VEC <= n) raw[k].load(x + first + k * STEP);
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
        u32 i = first + k * STEP;
        if (i >= n) return;
        u32 at = i / (u32)plane, c = at % (u32)channels;
        int here = (at + 1) * plane - i;
        Affine now = channel(w, b, mean, var, c, eps), next = now;
        if (here < VEC) next = channel(w, b, mean, var, c + 1 == channels ? 0 : c + 1, eps);
        if (i + VEC <= n) {
            float v[VEC];
            raw[k].open(v);
#pragma unroll
            for (int j = 0; j < VEC; j++) v[j] = normal(v[j], j < here ? now : next);
            store<VEC>(y + i, v);
        } else {
            for (int j = 0; i + j < n; j++)
                y[i + j] = narrow<T>(normal(widen(x[i + j]), j < here ? now : next));
        }
    }
}
