// How many inputs an average divides by: those of the window, with padding or without.
FN int extent(int o, int size, int kernel, int stride, int pad) {
    int first = o * stride - pad, last = first + kernel;
    last = last < size + pad ? last : size + pad;
    if (PADDED) return last - first;
    return (last < size ? last : size) - (first > 0 ? first : 0);
}
FN float cells(int oh, int ow, int height, int width) {
    return DIVISOR ? DIVISOR : extent(oh, height, KH, SH, PH) * extent(ow, width, KW, SW, PW);
}
