/* kernelforge
[let]
groups = "in0.shape[0] * num_groups"
size = "in0.numel / groups"
plane = "in0.numel / (in0.shape[0] * in0.shape[1])"
fits = "max(0, 1 - plane % $vec)"
members = "next_pow2(ceil_div(size, 4096 * $vec))"
teams = "256 / members"
span = "ceil_div(ceil_div(size, $vec), members) * $vec"
[workspace.ws0]
bytes = "128 * 256"
init = "zero"
[workspace.ws1]
bytes = "8 * 2 * 256"
[[launch]]
kernel = "group_norm_team"
grid = ["teams * members"]
block = ["512 * fits"]
cooperative = true
args = [
    "in0", "$weight", "$bias", "out0", "ws0", "ws1", "i32:groups", "i32:size", "i32:members",
    "i32:span", "i32:plane", "i32:num_groups", "f32:eps"
]
*/
$prelude
constexpr int VEC = $vec, ITEMS = 8;

// Waits until every member of a team has come here for the `target / members`-th time. The launch
// is cooperative, so all blocks run at once.
FN void meet(u32* arrived, u32 target) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (*(volatile u32*)arrived < target) {}
    __threadfence();
}

// A team of blocks holds a whole group in its registers, 64 KiB each: the tensor is read once.
// While one team waits for its members, another one keeps the memory busy.
extern "C" __global__ void __launch_bounds__(512, 2)
    group_norm_team(const T* input, const P* w, const P* b, T* output, u32* arrived, float2* part,
                    int groups, int size, int members, int span, int plane, int num_groups,
                    float eps) {
    __shared__ float slots[2][32];
    __shared__ float2 shared_moments;
    int teams = gridDim.x / members, team = blockIdx.x / members, member = blockIdx.x % members;
    int start = member * span, count = min(max(size - start, 0), span), round = 0;
    for (int group = team; group < groups; group += teams, round++) {
        const T* x = input + (i64)group * size + start;
        Raw<VEC, T> raw[ITEMS];
        float v[VEC], total = 0.0f, square = 0.0f;
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            int i = (k * 512 + threadIdx.x) * VEC;
            if (i < count) raw[k].load(x + i);
        }
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            if ((k * 512 + threadIdx.x) * VEC >= count) break;
            raw[k].open(v);
#pragma unroll
            for (int j = 0; j < VEC; j++) total += v[j];
        }
        float mean = block_sum(total, slots[0]) / max(count, 1);
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            if ((k * 512 + threadIdx.x) * VEC >= count) break;
            raw[k].open(v);
#pragma unroll
            for (int j = 0; j < VEC; j++) square += (v[j] - mean) * (v[j] - mean);
        }
        square = block_sum(square, slots[1]);
        // Two sets of slots: a block may publish its next group before others have read this one.
        float2* published = part + (round % 2 * teams + team) * members;
        if (threadIdx.x < 32) {
            if (threadIdx.x == 0) {
                published[member] = {mean, square};
                meet(arrived + team * 32, members * (round + 1));
            }
            __syncwarp();
            Moments all = warp_gather(published, members, span, size);
            if (threadIdx.x == 0)
                shared_moments = {all.mean, 1.0f / sqrtf(all.square / size + eps)};
        }
        __syncthreads();
        float2 m = shared_moments;
        T* y = output + (i64)group * size + start;
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            int i = (k * 512 + threadIdx.x) * VEC;
            if (i >= count) break;
            int c = group % num_groups * (size / plane) + (u32)(start + i) / (u32)plane;
            float gain = WEIGHT ? m.y * widen(w[c]) : m.y, shift = BIAS ? widen(b[c]) : 0.0f;
            raw[k].open(v);
#pragma unroll
            for (int j = 0; j < VEC; j++) v[j] = (v[j] - m.x) * gain + shift;
            store<VEC>(y + i, v);
        }
    }
}
