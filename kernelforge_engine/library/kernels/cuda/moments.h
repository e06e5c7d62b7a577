// Count, mean and sum of squared differences of a set, and those of two sets together by the
// pairwise formula of Chan, Golub, LeVeque 1983.
struct Moments { float count, mean, square; };
FN Moments join(Moments a, Moments b) {
    float count = a.count + b.count, delta = b.mean - a.mean;
    float share = __fdividef(b.count, max_(count, 1.0f));  // two empty sets stay empty
    return {count, a.mean + delta * share, a.square + b.square + delta * delta * a.count * share};
}
// Lane 0 of each warp gets the result.
FN Moments warp_join(Moments m) {
#pragma unroll
    for (int s = 16; s; s /= 2)
        m = join(m, {__shfl_down_sync(WARP, m.count, s), __shfl_down_sync(WARP, m.mean, s),
                     __shfl_down_sync(WARP, m.square, s)});
    return m;
}
// Each lane joins every 32nd of `parts` parts of `span` values, the last ones shorter or empty;
// every lane gets the moments of all `size` values.
FN Moments warp_gather(const float2* part, int parts, int span, int size) {
    Moments m = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x % 32; i < parts; i += 32) {
        int count = min(max(size - i * span, 0), span);
        float2 p = __ldcg(part + i);
        m = join(m, {(float)count, p.x, p.y});
    }
    m = warp_join(m);
    m.mean = __shfl_sync(WARP, m.mean, 0);
    m.square = __shfl_sync(WARP, m.square, 0);
    return m;
}
