struct f16 { u16 bits; };
template <> struct Pair<f16> {
    static FN float first(u32 w) {
        float v;
        asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"((u16)w));
        return v;
    }
    static FN void open(u32 w, float* v) { v[0] = first(w), v[1] = first(w >> 16); }
    static FN u32 close(const float* v) {
        u32 w;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(v[1]), "f"(v[0]));
        return w;
    }
};
