constexpr u32 WARP = 0xffffffffu;
FN float infinity() { return __uint_as_float(0x7f800000u); }
FN float warp_sum(float x) {
#pragma unroll
    for (int s = 16; s; s /= 2) x += __shfl_xor_sync(WARP, x, s);
    return x;
}
FN float warp_max(float x) {
#pragma unroll
    for (int s = 16; s; s /= 2) x = max_(__shfl_xor_sync(WARP, x, s), x);
    return x;
}
// Every thread gets the result. Each use in a kernel needs 32 floats of its own.
FN float block_sum(float x, float* slots) {
    int lane = threadIdx.x % 32;
    x = warp_sum(x);
    if (lane == 0) slots[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_sum(lane < blockDim.x / 32 ? slots[lane] : 0.0f);
}
FN float block_max(float x, float* slots) {
    int lane = threadIdx.x % 32;
    x = warp_max(x);
    if (lane == 0) slots[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_max(lane < blockDim.x / 32 ? slots[lane] : -infinity());
}
