struct f16 { u16 bits; };
#if W == 16
typedef short vs __attribute__((vector_size(2 * W)));
FN vf load(const f16* p) { return (vf)__builtin_ia32_vcvtph2ps512_mask(read<vs>(p), vf{}, -1, 4); }
FN void store(f16* p, vf v) {
    vs h = (vs)__builtin_ia32_vcvtps2ph512_mask(v, 0, vs{}, -1);
    __builtin_memcpy(p, &h, sizeof h);
}
#elif W == 8 && defined(__F16C__)
typedef short vs __attribute__((vector_size(2 * W)));
FN vf load(const f16* p) { return (vf)__builtin_ia32_vcvtph2ps256(read<vs>(p)); }
FN void store(f16* p, vf v) {
    vs h = (vs)__builtin_ia32_vcvtps2ph256(v, 0);
    __builtin_memcpy(p, &h, sizeof h);
}
#else
FN vf load(const f16* p) {
    vu h = __builtin_convertvector(read<vh>(p), vu);
    vu low = (h & 0x7fff) << 13;
    vu finite = (vu)((vf)low * 0x1p112f);  // moves the exponent bias; exact, subnormals too
    return (vf)((low >= 0x7c00u << 13 ? low | 0x7f800000 : finite) | (h & 0x8000) << 16);
}
FN void store(f16* p, vf v) {
    vu u = (vu)v, a = u & 0x7fffffff;
    vu normal = (a + 0xfff + ((a >> 13) & 1) - (112u << 23)) >> 13;
    vu small = (vu)((vf)a + 0.5f) - 0x3f000000;  // the sum rounds to the subnormal's unit, 2^-24
    vu r = a < 0x38800000 ? small : a >= 0x47800000 ? vu{} + 0x7c00 : normal;
    r = a > 0x7f800000 ? vu{} + 0x7e00 : r;
    vh h = __builtin_convertvector(r | (u >> 16 & 0x8000), vh);
    __builtin_memcpy(p, &h, sizeof h);
}
#endif
