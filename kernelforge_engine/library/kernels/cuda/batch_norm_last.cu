/* kernelforge
[let]
channels = "in0.shape[1]"
pixels = "in0.numel / channels"
vectors = "channels / $vec"
across = "min(vectors, 256)"
down = "256 / across"
[[launch]]
kernel = "batch_norm_last"
grid = ["ceil_div(pixels, down * $deep)", "ceil_div(vectors, across)"]
block = ["across * max(0, 1 - channels % $vec)", "down"]
args = ["in0", "$weight", "$bias", "$mean", "$var", "out0", "i32:pixels", "i32:channels", "f32:eps"]
*/
$prelude
constexpr int VEC = $vec, DEEP = $deep;

// Channels last: a thread keeps the parameters of VEC channels and walks down DEEP pixels.
extern "C" __global__ void __launch_bounds__(256)
    batch_norm_last(const T* x, const P* w, const P* b, const P* mean, const P* var, T* y,
                    int pixels, int channels, float eps) {
    int c = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    int first = blockIdx.x * blockDim.y * DEEP + threadIdx.y;
    if (c >= channels) return;
    Raw<VEC, T> raw[DEEP];
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
        int p = first + k * blockDim.y;
        if (p < pixels) raw[k].load(x + (i64)p * channels + c);
    }
    Affine a[VEC];
#pragma unroll
    for (int j = 0; j < VEC; j++) a[j] = channel(w, b, mean, var, c + j, eps);
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
        int p = first + k * blockDim.y;
        if (p >= pixels) return;
        float v[VEC];
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++) v[j] = normal(v[j], a[j]);
        store<VEC>(y + (i64)p * channels + c, v);
    }
}
