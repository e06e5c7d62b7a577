/* kernelforge
[let]
width = "$item * in0.shape[1]"
[[launch]]
kernel = "embedding"
args = [
    "in0", "in1", "out0", "i64:in0.shape[0]", "i64:width", "i64:$outer", "i64:$inner",
    "i64:$outer_step", "i64:$inner_step"
]
*/
typedef long long i64;

// An index outside the table gives a row of NaN instead of foreign memory.
extern "C" void embedding(const char* table, const $index* at, char* y, i64 entries, i64 width,
                          i64 outer, i64 inner, i64 outer_step, i64 inner_step) {
    const i64 rows = outer * inner;
#pragma omp parallel for if (rows * width > 65536)
    for (i64 r = 0; r < rows; r++) {
        i64 entry = at[r / inner * outer_step + r % inner * inner_step];
        if (entry < 0 || entry >= entries) __builtin_memset(y + r * width, 0xff, width);
        else __builtin_memcpy(y + r * width, table + entry * width, width);
    }
}
