typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;
typedef float vf;  // one lane: some functions below are shared with the CPU kernels
#define FN __device__ inline

FN float splat(float x) { return x; }
FN float select(bool m, float a, float b) { return m ? a : b; }
FN float abs_(float x) { return fabsf(x); }
FN float max_(float a, float b) { return a > b ? a : b; }  // b where either is NaN
FN float clamp_(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

// 16 bytes of T as floats and back; a 16-bit T says how a word of two is opened and closed.
template <class T> constexpr int LANES = 16 / sizeof(T);
template <class T> struct Pair;
template <class T> struct Words {
    static FN void open(uint4 w, float* v) {
        Pair<T>::open(w.x, v), Pair<T>::open(w.y, v + 2);
        Pair<T>::open(w.z, v + 4), Pair<T>::open(w.w, v + 6);
    }
    static FN uint4 close(const float* v) {
        return make_uint4(Pair<T>::close(v), Pair<T>::close(v + 2), Pair<T>::close(v + 4),
                          Pair<T>::close(v + 6));
    }
};
template <> struct Words<float> {
    static FN void open(uint4 w, float* v) {
        v[0] = __uint_as_float(w.x), v[1] = __uint_as_float(w.y);
        v[2] = __uint_as_float(w.z), v[3] = __uint_as_float(w.w);
    }
    static FN uint4 close(const float* v) {
        return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                          __float_as_uint(v[3]));
    }
};
template <class T> FN float widen(T x) {
    if constexpr (sizeof(T) == 4) return x;
    else return Pair<T>::first(x.bits);
}
template <class T> FN T narrow(float x) {
    if constexpr (sizeof(T) == 4) return x;
    else {
        float v[2] = {x, 0.0f};
        return T{(u16)Pair<T>::close(v)};
    }
}

// N values at consecutive addresses, as 16-byte words where N allows it. They stay closed until
// they are used, so that loads in flight take few registers.
template <int N, class T, bool WIDE = N % LANES<T> == 0> struct Raw {
    T v[N];
    FN void load(const T* p) {
#pragma unroll
        for (int i = 0; i < N; i++) v[i] = p[i];
    }
    FN void open(float* to) const {
#pragma unroll
        for (int i = 0; i < N; i++) to[i] = widen(v[i]);
    }
};
template <int N, class T> struct Raw<N, T, true> {
    uint4 w[N / LANES<T>];
    FN void load(const T* p) {
#pragma unroll
        for (int i = 0; i < N / LANES<T>; i++) w[i] = ((const uint4*)p)[i];
    }
    FN void open(float* to) const {
#pragma unroll
        for (int i = 0; i < N / LANES<T>; i++) Words<T>::open(w[i], to + i * LANES<T>);
    }
};
template <int N, class T> FN void load(const T* p, float* to) {
    Raw<N, T> raw;
    raw.load(p);
    raw.open(to);
}
template <int N, class T> FN void store(T* p, const float* v) {
    if constexpr (N % LANES<T> == 0) {
#pragma unroll
        for (int i = 0; i < N; i += LANES<T>) *(uint4*)(p + i) = Words<T>::close(v + i);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) p[i] = narrow<T>(v[i]);
    }
}
