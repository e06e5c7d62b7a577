/* kernelforge
[let]
vectors = "$item * in0.shape[1] / $bytes"
rows = "$outer * $inner"
[[launch]]
kernel = "embedding_warp"
grid = ["ceil_div(rows, 8)"]
block = [32, "8 * max(0, 1 - $item * in0.shape[1] % $bytes)"]
args = [
    "in0", "in1", "out0", "i64:in0.shape[0]", "i32:vectors", "i64:rows", "i32:$inner",
    "i64:$outer_step", "i64:$inner_step"
]
*/
typedef long long i64;
typedef $word Word;

// A warp copies a row, so that its index is read once. An index outside the table gives a row of
// NaN instead of foreign memory.
extern "C" __global__ void __launch_bounds__(256)
    embedding_warp(const Word* table, const $index* at, Word* y, i64 entries, int vectors, i64 rows,
                   int inner, i64 outer_step, i64 inner_step) {
    i64 row = (i64)blockIdx.x * 8 + threadIdx.y;
    if (row >= rows) return;
    i64 entry = at[row / inner * outer_step + row % inner * inner_step];
    bool inside = entry >= 0 && entry < entries;
    Word nothing;
    memset(&nothing, 0xff, sizeof nothing);
    for (int i = threadIdx.x; i < vectors; i += 32)
        y[row * vectors + i] = inside ? table[entry * vectors + i] : nothing;
}
