// One axis of a pooling window, and the inputs under an output, with padding or without.
struct Axis { int size, out, kernel, stride, pad, dilation; };
FN int extent(Axis a, int o, bool padded) {
    int first = o * a.stride - a.pad, last = first + a.kernel;
    last = last < a.size + a.pad ? last : a.size + a.pad;
    if (padded) return last - first;
    return (last < a.size ? last : a.size) - (first > 0 ? first : 0);
}
FN float cells(Axis v, Axis h, int oh, int ow, int divisor, bool padded) {
    return divisor ? divisor : extent(v, oh, padded) * extent(h, ow, padded);
}
