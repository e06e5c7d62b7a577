/* kernelforge
[let]
images = "in0.shape[0]"
channels = "in0.shape[1]"
pixels = "in0.numel / (images * channels)"
[[launch]]
kernel = "column_mean"
grid = ["ceil_div(channels, 32)", "images"]
block = [32, 16]
args = ["in0", "out0", "i32:pixels", "i32:channels"]
*/
$prelude
// Channels last: 32 channels for each block, 16 threads down the pixels of each channel.
extern "C" __global__ void __launch_bounds__(512)
    column_mean(const T* x, T* y, int pixels, int channels) {
    __shared__ float sums[16][32];
    int c = blockIdx.x * 32 + threadIdx.x;
    float total = 0.0f;
    if (c < channels)
        for (int p = threadIdx.y; p < pixels; p += 16)
            total += widen(x[((i64)blockIdx.y * pixels + p) * channels + c]);
    sums[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y || c >= channels) return;
    for (int k = 1; k < 16; k++) total += sums[k][threadIdx.x];
    y[(i64)blockIdx.y * channels + c] = narrow<T>(total / pixels);
}
