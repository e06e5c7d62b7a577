FN vf sqrt_(vf x) {
#if W == 16
    return (vf)__builtin_ia32_sqrtps512_mask(x, x, -1, 4);
#elif W == 8
    return (vf)__builtin_ia32_sqrtps256(x);
#else
    for (int i = 0; i < W; i++) x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}
