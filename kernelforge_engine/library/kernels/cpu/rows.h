FN float infinity() { return __builtin_inff(); }
FN vi lanes() {
    vi v;
    for (int i = 0; i < W; i++) v[i] = i;
    return v;
}
FN float sum(vf v) {
    for (int s = W / 2; s; s /= 2) v += __builtin_shuffle(v, lanes() ^ s);
    return v[0];
}
FN float largest(vf v) {
    for (int s = W / 2; s; s /= 2) v = max_(__builtin_shuffle(v, lanes() ^ s), v);
    return v[0];
}
// The end of a row as its last W values: all but the last `cols % W` of them were seen before.
template <class T> FN vf load_end(const T* row, i64 cols) {
    if (cols >= W) return load(row + cols - W);
    T t[W] = {};
    for (i64 i = 0; i < cols; i++) t[W - cols + i] = row[i];
    return load(t);
}
template <class T> FN void store_end(T* row, vf v, i64 cols) {
    if (cols >= W) return store(row + cols - W, v);
    T t[W];
    store(t, v);
    for (i64 i = 0; i < cols; i++) row[i] = t[W - cols + i];
}
FN vi unseen(i64 cols) { return lanes() >= W - (int)(cols % W); }
