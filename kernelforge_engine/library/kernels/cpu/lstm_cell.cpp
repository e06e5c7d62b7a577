/* kernelforge
[let]
batch = "in0.shape[0]"
[workspace.ws0]
bytes = "4 * batch * in3.shape[0]"
[[launch]]
kernel = "lstm_cell"
args = [
    "in0", "in1", "in2", "in3", "in4", "in5", "in6", "out0", "out1", "ws0", "i32:batch",
    "i32:in0.shape[1]", "i32:in1.shape[1]"
]
*/
$prelude
FN vf dot(vf a, const float* w, const float* x, i64 n) {
    i64 i = 0;
    for (; i + W <= n; i += W) a += load(w + i) * load(x + i);
    return i < n ? a + load(w + i, n - i) * load(x + i, n - i) : a;
}
FN vf sigmoid(vf x) { return 1.0f / (1.0f + exp_(-x)); }

// `n` units from their four gates, in torch's order: input, forget, cell, output.
FN void unit(const float* gates, int hidden, const float* c, float* h_out, float* c_out, int n) {
    vf input = load(gates, n), forget = load(gates + hidden, n);
    vf cell = load(gates + 2 * hidden, n), out = load(gates + 3 * hidden, n);
    vf kept = sigmoid(forget) * load(c, n) + sigmoid(input) * tanh_(cell);
    store(c_out, kept, n);
    store(h_out, sigmoid(out) * tanh_(kept), n);
}

extern "C" void lstm_cell(const float* x, const float* h, const float* c, const float* w_in,
                          const float* w_hidden, const float* b_in, const float* b_hidden,
                          float* h_out, float* c_out, float* scratch, int batch, int inputs,
                          int hidden) {
    const int rows = 4 * hidden;
#pragma omp parallel for if ((i64)batch * rows * (inputs + hidden) > 1000000)
    for (int r = 0; r < batch * rows; r++) {
        const int b = r / rows, g = r % rows;
        vf a = dot(vf{}, w_in + (i64)g * inputs, x + (i64)b * inputs, inputs);
        a = dot(a, w_hidden + (i64)g * hidden, h + (i64)b * hidden, hidden);
        scratch[r] = sum(a) + b_in[g] + b_hidden[g];
    }
    for (int b = 0; b < batch; b++)
        for (int j = 0; j < hidden; j += W) {
            const i64 at = (i64)b * hidden + j;
            const int n = hidden - j < W ? hidden - j : W;
            unit(scratch + (i64)b * rows + j, hidden, c + at, h_out + at, c_out + at, n);
        }
}
