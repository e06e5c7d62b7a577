// Batch norm of one channel, as (x - mean) gain + shift: folding the mean into the shift would
// cancel where a channel's mean is large.
struct Affine { float mean, gain, shift; };
FN float normal(float x, Affine a) { return (x - a.mean) * a.gain + a.shift; }
FN Affine channel(const P* w, const P* b, const P* mean, const P* var, int c, float eps) {
    float gain = __frsqrt_rn(widen(var[c]) + eps);
    return {widen(mean[c]), WEIGHT ? gain * widen(w[c]) : gain, BIAS ? widen(b[c]) : 0.0f};
}
