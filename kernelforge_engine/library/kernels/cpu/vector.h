typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;
// Lanes of a vector. A kernel that waits for memory is faster with 32-byte vectors and says NARROW.
#if defined(__AVX512F__) && !defined(NARROW)
#define W 16
#elif defined(__AVX2__)
#define W 8
#else
#define W 4
#endif
typedef float vf __attribute__((vector_size(4 * W)));
typedef int vi __attribute__((vector_size(4 * W)));
typedef u32 vu __attribute__((vector_size(4 * W)));
typedef u16 vh __attribute__((vector_size(2 * W)));
#define FN static inline

FN vf splat(float x) { return x - vf{}; }
FN vf select(vi m, vf a, vf b) { return m ? a : b; }
FN vf quotient(vf a, vf b) { return a / b; }
FN vf abs_(vf x) { return (vf)((vi)x & 0x7fffffff); }
FN vf max_(vf a, vf b) { return a > b ? a : b; }  // b where either is NaN
FN vf clamp_(vf x, float low, float high) {
    x = x < low ? splat(low) : x;
    return x > high ? splat(high) : x;
}

template <class V, class P> FN V read(const P* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
FN vf load(const float* p) { return read<vf>(p); }
FN void store(float* p, vf v) { __builtin_memcpy(p, &v, sizeof v); }
// Fewer than W values: the other lanes are zero and are not stored.
template <class T> FN vf load(const T* p, i64 n) {
    T t[W] = {};
    for (i64 i = 0; i < n; i++) t[i] = p[i];
    return load(t);
}
template <class T> FN void store(T* p, vf v, i64 n) {
    T t[W];
    store(t, v);
    for (i64 i = 0; i < n; i++) p[i] = t[i];
}
