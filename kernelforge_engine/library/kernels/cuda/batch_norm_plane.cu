/* kernelforge
[let]
channels = "in0.shape[1]"
planes = "in0.shape[0] * channels"
plane = "in0.numel / planes"
parts = "ceil_div(plane, $tile)"
threads = "ceil_div(ceil_div(plane, parts), 32 * $vec * $deep) * 32"
[[launch]]
kernel = "batch_norm_plane"
grid = ["planes * parts"]
block = ["threads * max(0, 1 - plane % $vec)"]
args = [
    "in0", "$weight", "$bias", "$mean", "$var", "out0", "i32:channels", "i32:plane",
    "i32:parts", "f32:eps"
]
*/
$prelude
constexpr int VEC = $vec, DEEP = $deep;

// A block works in one plane, so that it reads one channel's parameters.
extern "C" __global__ void __launch_bounds__(256)
    batch_norm_plane(const T* x, const P* w, const P* b, const P* mean, const P* var, T* y,
                     int channels, int plane, int parts, float eps) {
    u32 at = blockIdx.x / (u32)parts, part = blockIdx.x % (u32)parts;
    int step = blockDim.x * VEC, first = part * step * DEEP + threadIdx.x * VEC;
    x += (i64)at * plane;
    y += (i64)at * plane;
    Raw<VEC, T> raw[DEEP];
#pragma unroll
    for (int k = 0; k < DEEP; k++)
        if (first + k * step < plane) raw[k].load(x + first + k * step);
    Affine a = channel(w, b, mean, var, at % (u32)channels, eps);
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
        int i = first + k * step;
        if (i >= plane) return;
        float v[VEC];
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++) v[j] = normal(v[j], a);
        store<VEC>(y + i, v);
    }
}
