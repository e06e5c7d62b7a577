// 16-bit types round away the error of the fast instructions; float keeps the accurate ones.
FN float exp_(float x) { return FAST ? __expf(x) : expf(x); }
FN float quotient(float a, float b) {
    if (!FAST) return a / b;
    float r;
    asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(b));
    return a * r;
}
FN float sqrt_(float x) { return sqrtf(x); }
