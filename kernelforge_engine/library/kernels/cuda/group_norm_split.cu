/* kernelforge
[let]
groups = "in0.shape[0] * num_groups"
size = "in0.numel / groups"
plane = "in0.numel / (in0.shape[0] * in0.shape[1])"
fits = "max(0, 1 - plane % $vec)"
chunks = "min(128, ceil_div(size, $tile))"
span = "ceil_div(ceil_div(size, $vec), chunks) * $vec"
tiles = "ceil_div(size, $tile)"
[workspace.ws0]
bytes = "8 * groups * chunks"
[[launch]]
kernel = "moments_of_chunks"
grid = ["groups * chunks"]
block = ["256 * fits"]
args = ["in0", "ws0", "i32:size", "i32:chunks", "i32:span"]
[[launch]]
kernel = "normalise"
grid = ["groups * tiles"]
block = ["256 * fits"]
args = [
    "in0", "$weight", "$bias", "out0", "ws0", "i32:size", "i32:chunks", "i32:span",
    "i32:tiles", "i32:plane", "i32:num_groups", "f32:eps"
]
*/
$prelude
constexpr int VEC = $vec, DEEP = $deep;  // a thread has DEEP vectors of VEC values in flight
constexpr int STEP = 256 * VEC, TILE = STEP * DEEP;

// A chunk of one group: each thread takes the exact two-pass moments of DEEP vectors at a time.
extern "C" __global__ void __launch_bounds__(256)
    moments_of_chunks(const T* x, float2* part, int size, int chunks, int span) {
    __shared__ Moments slots[8];
    int chunk = blockIdx.x % chunks;
    x += (i64)(blockIdx.x / chunks) * size;
    int end = min((i64)size, (i64)(chunk + 1) * span);
    Moments all = {0.0f, 0.0f, 0.0f};
    for (int first = chunk * span + threadIdx.x * VEC; first < end; first += TILE) {
        Raw<VEC, T> raw[DEEP];
        float v[VEC], mean = 0.0f, square = 0.0f;
        int count = min(DEEP, (end - first + STEP - 1) / STEP) * VEC;
#pragma unroll
        for (int k = 0; k < DEEP; k++)
            if (k * VEC < count) raw[k].load(x + first + k * STEP);
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            if (k * VEC >= count) break;
            raw[k].open(v);
#pragma unroll
            for (int j = 0; j < VEC; j++) mean += v[j];
        }
        mean = __fdividef(mean, count);
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            if (k * VEC >= count) break;
            raw[k].open(v);
#pragma unroll
            for (int j = 0; j < VEC; j++) square += (v[j] - mean) * (v[j] - mean);
        }
        all = join(all, {(float)count, mean, square});
    }
    all = warp_join(all);
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = all;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    all = warp_join(threadIdx.x < 8 ? slots[threadIdx.x] : Moments{0.0f, 0.0f, 0.0f});
    if (threadIdx.x == 0) part[blockIdx.x] = {all.mean, all.square};
}

// From the last tile to the first: what the other kernel read last is still in the L2 cache.
extern "C" __global__ void __launch_bounds__(256)
    normalise(const T* x, const P* w, const P* b, T* y, const float2* part, int size, int chunks,
              int span, int tiles, int plane, int num_groups, float eps) {
    __shared__ float2 found;
    int block = gridDim.x - 1 - blockIdx.x, group = block / tiles;
    int first = block % tiles * TILE + threadIdx.x * VEC;
    int channel = group % num_groups * (size / plane);
    x += (i64)group * size;
    y += (i64)group * size;
    Raw<VEC, T> raw[DEEP];
#pragma unroll
    for (int k = 0; k < DEEP; k++)
        if (first + k * STEP < size) raw[k].load(x + first + k * STEP);
    if (threadIdx.x < 32) {
        Moments all = warp_gather(part + group * chunks, chunks, span, size);
        if (threadIdx.x == 0) found = {all.mean, 1.0f / sqrtf(all.square / size + eps)};
    }
    __syncthreads();
    float mean = found.x, scale = found.y;
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
        int i = first + k * STEP;
        if (i >= size) return;
        int c = channel + (u32)i / (u32)plane;
        float gain = WEIGHT ? scale * widen(w[c]) : scale, shift = BIAS ? widen(b[c]) : 0.0f;
        float v[VEC];
        raw[k].open(v);
#pragma unroll
        for (int j = 0; j < VEC; j++) v[j] = (v[j] - mean) * gain + shift;
        store<VEC>(y + i, v);
    }
}
