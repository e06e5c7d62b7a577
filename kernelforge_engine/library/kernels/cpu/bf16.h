struct bf16 { u16 bits; };
FN vf load(const bf16* p) {
    return (vf)(__builtin_convertvector(read<vh>(p), vu) << 16);
}
FN void store(bf16* p, vf v) {
    vu u = (vu)v;
    vu even = (u + 0x7fff + ((u >> 16) & 1)) >> 16;  // round to nearest, ties to even
    vh h = __builtin_convertvector(v == v ? even : vu{} + 0x7fc0, vh);
    __builtin_memcpy(p, &h, sizeof h);
}
