/* kernelforge
[let]
channels = "in0.shape[1]"
[[launch]]
kernel = "pool_last"
args = [
    "in0", "out0", "i32:in0.shape[0]", "i32:channels", "i32:in0.shape[2]", "i32:out0.shape[2]",
    "i32:in0.shape[3]", "i32:out0.shape[3]"
]
*/
$prelude
FN vf step(vf a, vf v) { return $step; }

FN vf read_some(const T* p, int n) { return n < W ? load(p, n) : load(p); }

extern "C" void pool_last(const T* input, T* output, int images, int channels, int height,
                          int out_height, int width, int out_width) {
    const i64 pixels = (i64)images * out_height * out_width;
#pragma omp parallel for if (pixels * channels > 2048)
    for (i64 p = 0; p < pixels; p++) {
        int ow = p % out_width, oh = p / out_width % out_height;
        const T* x = input + p / out_width / out_height * height * width * channels;
        for (int c = 0; c < channels; c += W) {
            int n = channels - c;
            vf a = splat($start);
            for (int i = 0; i < KH; i++) {
                int row = oh * SH - PH + i * DH;
                if (row < 0 || row >= height) continue;
                for (int j = 0; j < KW; j++) {
                    int column = ow * SW - PW + j * DW;
                    if (column < 0 || column >= width) continue;
                    a = step(a, read_some(x + ((i64)row * width + column) * channels + c, n));
                }
            }
            a = $finish;
            if (n < W) store(output + p * channels + c, a, n);
            else store(output + p * channels + c, a);
        }
    }
}
