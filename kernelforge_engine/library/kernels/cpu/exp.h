FN vf ldexp_(vf p, vf n) {
#if W == 16
    return (vf)__builtin_ia32_scalefps512_mask(p, n, p, -1, 4);
#else
    vi e = __builtin_convertvector(n, vi), half = e >> 1;  // two steps reach the subnormals
    return p * (vf)((half + 127) << 23) * (vf)((e - half + 127) << 23);
#endif
}
// exp(n ln2 + r), |r| <= ln2 / 2, by a minimax polynomial fitted for this file: 3.1e-9 relative.
FN vf exp_(vf x) {
    x = clamp_(x, -104.0f, 89.0f);
    vf n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;  // adding 1.5 * 2^23 rounds
    vf r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vf p = splat(0.00138146f);
    p = p * r + 0.00836871564f;
    p = p * r + 0.0416683890f;
    p = p * r + 0.166665211f;
    p = p * r + 0.49999994f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return ldexp_(p, n);
}
