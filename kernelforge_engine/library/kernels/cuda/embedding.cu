/* kernelforge
[let]
vectors = "$item * in0.shape[1] / $bytes"
rows = "$outer * $inner"
[[launch]]
kernel = "embedding"
grid = ["ceil_div(rows * vectors, 256)"]
block = ["256 * max(0, 1 - $item * in0.shape[1] % $bytes)"]
args = [
    "in0", "in1", "out0", "i64:in0.shape[0]", "i32:vectors", "i64:rows", "i32:$inner",
    "i64:$outer_step", "i64:$inner_step"
]
*/
typedef long long i64;
typedef $word Word;

// One word of $bytes bytes for each thread. An index outside the table gives a row of NaN instead
// of foreign memory.
extern "C" __global__ void __launch_bounds__(256)
    embedding(const Word* table, const $index* at, Word* y, i64 entries, int vectors, i64 rows,
              int inner, i64 outer_step, i64 inner_step) {
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x, row = i / vectors;
    if (row >= rows) return;
    i64 entry = at[row / inner * outer_step + row % inner * inner_step];
    Word w;
    if (entry >= 0 && entry < entries) w = table[entry * vectors + i % vectors];
    else memset(&w, 0xff, sizeof w);
    y[i] = w;
}
