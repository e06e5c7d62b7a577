/* kernelforge
[let]
images = "in0.shape[0]"
channels = "in0.shape[1]"
pixels = "in0.numel / (images * channels)"
[[launch]]
kernel = "column_mean"
args = ["in0", "out0", "i64:images", "i64:pixels", "i64:channels"]
*/
$prelude
extern "C" void column_mean(const T* input, T* output, i64 images, i64 pixels, i64 channels) {
    const i64 strips = (channels + W - 1) / W;
#pragma omp parallel for if (images * pixels * channels > 16384)
    for (i64 j = 0; j < images * strips; j++) {
        i64 image = j / strips, c = j % strips * W, n = channels - c < W ? channels - c : W;
        const T* x = input + image * pixels * channels + c;
        vf total = {};
        for (i64 at = 0; at < pixels; at += 64) {  // short sums first: the error stays small
            vf part = {};
            for (i64 p = at; p < pixels && p < at + 64; p++)
                part += n < W ? load(x + p * channels, n) : load(x + p * channels);
            total += part;
        }
        store(output + image * channels + c, total / (float)pixels, n);
    }
}
