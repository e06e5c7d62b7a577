/* kernelforge
[let]
cols = "in0.shape[-1]"
rows = "in0.numel / cols"
[[launch]]
kernel = "softmax_stream"
grid = ["rows"]
block = ["512 * max(0, 1 - cols % $vec)"]
args = ["in0", "out0", "i32:cols"]
*/
$prelude
constexpr int VEC = $vec;

// One pass finds the maximum and the sum of exp(x - maximum), rescaled whenever the maximum grows
// (Milakov, Gimelshein 2018); the other writes. Any length of row.
extern "C" __global__ void __launch_bounds__(512) softmax_stream(const T* x, U* y, int cols) {
    __shared__ float slots[2][32];
    x += (i64)blockIdx.x * cols;
    y += (i64)blockIdx.x * cols;
    float v[VEC], total = 0.0f;
    float top = -3.402823466e38f;  // finite, so that -infinity - top is no NaN
#pragma unroll 2
    for (int i = threadIdx.x * VEC; i < cols; i += 512 * VEC) {
        load<VEC>(x + i, v);
        float higher = top, part = 0.0f;
#pragma unroll
        for (int j = 0; j < VEC; j++) higher = max_(v[j], higher);
#pragma unroll
        for (int j = 0; j < VEC; j++) part += exp_(v[j] - higher);
        total = total * exp_(top - higher) + part;
        top = higher;
    }
    float highest = block_max(top, slots[0]);
    float scale = 1.0f / block_sum(total * exp_(top - highest), slots[1]);
#pragma unroll 2
    for (int i = threadIdx.x * VEC; i < cols; i += 512 * VEC) {
        load<VEC>(x + i, v);
#pragma unroll
        for (int j = 0; j < VEC; j++) v[j] = exp_(v[j] - highest) * scale;
        store<VEC>(y + i, v);
    }
}
