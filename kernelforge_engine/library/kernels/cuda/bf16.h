struct bf16 { u16 bits; };
template <> struct Pair<bf16> {
    static FN float first(u32 w) { return __uint_as_float(w << 16); }
    static FN void open(u32 w, float* v) {
        v[0] = first(w), v[1] = __uint_as_float(w & 0xffff0000u);
    }
    static FN u32 close(const float* v) {
        u32 w;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(v[1]), "f"(v[0]));
        return w;
    }
};
