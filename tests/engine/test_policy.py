"""What the rules and draws find, each with an honest kernel beside it, on every backend."""

from string import Template

import pytest

from kernelforge_engine.errors import BadOption
from kernelforge_engine.records import Status

MODEL = """
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4096)
        self.line = torch.nn.Linear(96, 40)
        self.batch = torch.nn.BatchNorm1d(50)

    def forward(self, x, long, half, few):
        self.norm(long)
        torch.exp(x)
        torch.softmax(x, -1)
        self.line(x[:, :96].contiguous())
        self.batch(x[:, :50].contiguous())
        torch.argmax(x, -1)
        x.topk(4)
        x.sort(-1)
        F.silu(half)
        torch.clamp(x, 2.0, 2.0)
        x.mul_(2.0)
        return torch.einsum("ij,kj->ik", few, few) + torch.cdist(few, few)


def make_model():
    return Model().eval()


def make_inputs():
    torch.manual_seed(0)
    x, long = torch.randn(48, 100), torch.randn(6, 4096)
    return x, long, torch.randn(64, 100).bfloat16(), torch.randn(8, 5000)
"""

HEADER = """/* kernelforge
[[launch]]
kernel = "k"
$grid
args = [$args]
*/
"""
GRID = "grid = [64]\nblock = [64]"
# `EACH(n) { ... }` runs its body for every i below n, on either backend.
PRELUDE = {
    "cpu": """
#include <cmath>
#include <cstdint>
#include <cstring>
typedef int64_t i64;
#define KERNEL extern "C" void
#define EACH(n) for (i64 i = 0; i < n; ++i)
static float bits(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static uint32_t word(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
""",
    "cuda": """
typedef long long i64;
typedef unsigned int uint32_t;
typedef unsigned short uint16_t;
#define KERNEL extern "C" __global__ void
#define EACH(n) for (i64 i = blockIdx.x * 64ll + threadIdx.x; i < n; i += gridDim.x * 64ll)
__device__ float bits(uint32_t u) { return __uint_as_float(u); }
__device__ uint32_t word(float f) { return __float_as_uint(f); }
""",
}


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.py"
    file.write_text(MODEL)
    return file


async def judged(forge, operator, args, body, tier="full"):
    backend = forge.variants["aten::exp"].call.backend
    names = ", ".join(f'"{a}"' for a in args.split())
    grid = GRID if backend == "cuda" else ""
    header = Template(HEADER).substitute(grid=grid, args=names)
    text = header + PRELUDE[backend] + body
    return (await forge.submit(operator, text, tier=tier)).verdict


EXP = """
KERNEL k(const float* x, float* y, i64 n) { EACH(n) y[i] = $form; }
"""


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ("expf(x[i])", Status.VALID),
        ("exp2f(x[i] * 1.44269504f)", Status.VALID),
        ("x[i] < -20.f ? 0.f : expf(x[i])", Status.WRONG_VALUES),
        ("x[i] < -10.f ? bits(word(expf(x[i])) & 0xffff0000u) : expf(x[i])", Status.WRONG_VALUES),
    ],
)
async def test_small_results_are_as_accurate_for_their_size_as_large_ones(forge, form, status):
    body = EXP.replace("$form", form)
    verdict = await judged(forge, "aten::exp", "in0 out0 i64:in0.numel", body)
    assert verdict.status == status, verdict
    if status != Status.VALID:
        assert verdict.evidence["rule"] == "T2 per binade"
        assert len(verdict.evidence["index"]) == 2
        assert verdict.evidence["error_over_bound"] > 1
        assert "times what is allowed at [" in verdict.reason


SOFTMAX = """
KERNEL k(const float* x, float* y, i64 rows, i64 cols) {
  EACH(rows) {
    const float* row = x + i * cols;
    float top = row[0], sum = 0.f;
    for (i64 c = 1; c < cols; ++c) top = (row[c] > top || row[c] != row[c]) ? row[c] : top;
    for (i64 c = 0; c < cols; ++c) sum += EXP(row[c] - TOP);
    for (i64 c = 0; c < cols; ++c) y[i * cols + c] = EXP(row[c] - TOP) / sum;
  }
}
"""


@pytest.mark.parametrize(
    ("exp", "top", "status"),
    [
        ("#define EXP(v) expf(v)", "top", Status.VALID),
        ("#define EXP(v) ((v) < -16.f ? 0.f : expf(v))", "top", Status.WRONG_VALUES),
        ("#define EXP(v) expf(v)", "0.f", Status.WRONG_VALUES),
    ],
)
async def test_a_softmax_keeps_its_small_probabilities_and_large_logits(forge, exp, top, status):
    body = exp + SOFTMAX.replace("TOP", top)
    args = "in0 out0 i64:in0.shape[0] i64:in0.shape[1]"
    verdict = await judged(forge, "aten::softmax.int", args, body)
    assert verdict.status == status, verdict


NORM = """
KERNEL k(const float* x, const float* w, const float* b, float* y, i64 rows, i64 cols, float eps) {
  EACH(rows) {
    const float* row = x + i * cols;
    float mean = 0.f, square = 0.f;
    for (i64 c = 0; c < cols; ++c) mean += row[c];
    mean /= cols;
    VARIANCE
    float scale = 1.f / sqrtf(square + eps);
    for (i64 c = 0; c < cols; ++c) y[i * cols + c] = (row[c] - mean) * scale * w[c] + b[c];
  }
}
"""
TWO_PASS = """
    for (i64 c = 0; c < cols; ++c) square += (row[c] - mean) * (row[c] - mean);
    square /= cols;
"""
ONE_PASS = """
    for (i64 c = 0; c < cols; ++c) square += row[c] * row[c];
    square = square / cols - mean * mean;
    square = square < 0.f ? 0.f : square;
"""


@pytest.mark.parametrize(
    ("variance", "status"), [(TWO_PASS, Status.VALID), (ONE_PASS, Status.WRONG_VALUES)]
)
async def test_sums_in_a_row_are_honest_but_a_variance_from_squares_is_not(forge, variance, status):
    body = NORM.replace("VARIANCE", variance)
    args = "in0 in1 in2 out0 i64:in0.shape[0] i64:in0.shape[1] f32:eps"
    verdict = await judged(forge, "aten::layer_norm", args, body)
    assert verdict.status == status, verdict


BATCH_NORM = """
KERNEL k(const float* x, const float* w, const float* b, const float* mean, const float* var,
         float* y, i64 n, i64 cols, float eps) {
  EACH(n) {
    i64 c = i % cols;
    y[i] = (x[i] - mean[c]) / sqrtf(var[c] + eps) * GAMMA + BETA;
  }
}
"""


@pytest.mark.parametrize(
    ("gamma", "beta", "status"),
    [
        ("w[c]", "b[c]", Status.VALID),
        ("1.f", "b[c]", Status.WRONG_VALUES),
        ("fabsf(w[c])", "b[c]", Status.WRONG_VALUES),
        ("w[c]", "0.f", Status.WRONG_VALUES),
    ],
)
async def test_parameters_are_not_what_they_were_initialised_with(forge, gamma, beta, status):
    body = BATCH_NORM.replace("GAMMA", gamma).replace("BETA", beta)
    args = "in0 in1 in2 in3 in4 out0 i64:in0.numel i64:in0.shape[1] f32:eps"
    verdict = await judged(forge, "aten::batch_norm", args, body)
    assert verdict.status == status, verdict


LINEAR = """
KERNEL k(const float* x, const float* w, const float* b, float* y, i64 n, i64 cols, i64 terms) {
  EACH(n) {
    float sum = 0.f;
    for (i64 t = 0; t < terms; ++t) sum += CUT(x[i / cols * terms + t]) * w[i % cols * terms + t];
    y[i] = sum + b[i % cols];
  }
}
"""


@pytest.mark.parametrize(
    ("cut", "status"),
    [
        ("#define CUT(v) (v)", Status.VALID),
        ("#define CUT(v) bits(word(v) & 0xffffe000u)", Status.WRONG_VALUES),
        ("#define CUT(v) bits(word(v) & 0xfffffffcu)", Status.WRONG_VALUES),
        ("#define CUT(v) (t < 8 && x[i / cols * terms] == 0.f ? 0.f : (v))", Status.WRONG_VALUES),
    ],
)
async def test_a_product_uses_every_bit_of_its_factors(forge, cut, status):
    args = "in0 in1 in2 out0 i64:out0.numel i64:out0.shape[1] i64:in0.shape[1]"
    verdict = await judged(forge, "aten::linear", args, cut + LINEAR)
    assert verdict.status == status, verdict
    if status == Status.VALID:
        assert {"one-hot left", "one-hot right", "integers"} <= set(verdict.evidence["draws"])


ARGMAX = """
KERNEL k(const float* x, i64* y, i64 rows, i64 cols) {
  EACH(rows) {
    const float* row = x + i * cols;
    i64 best = 0;
    for (i64 c = 1; c < cols; ++c)
      if (row[best] == row[best] && (row[c] != row[c] || row[c] IS row[best])) best = c;
    y[i] = best;
  }
}
"""


@pytest.mark.parametrize(("compare", "status"), [(">", Status.VALID), (">=", Status.WRONG_VALUES)])
async def test_argmax_takes_the_first_of_equal_values_as_torch_promises(forge, compare, status):
    args = "in0 out0 i64:in0.shape[0] i64:in0.shape[1]"
    verdict = await judged(forge, "aten::argmax", args, ARGMAX.replace("IS", compare))
    assert verdict.status == status, verdict
    if status == Status.VALID:
        assert verdict.evidence["class"] == "selection"
        assert {"ties", "level", "clustered", "sorted"} <= set(verdict.evidence["draws"])


# Selection by repeated maxima: what was taken is marked by its place. NaN counts as largest.
TOPK = """
KERNEL k(const float* x, float* y, i64* at, i64 rows, i64 cols, i64 most) {
  EACH(rows) {
    const float* row = x + i * cols;
    for (i64 r = 0; r < most; ++r) {
      i64 best = -1;
      for (i64 c = 0; c < cols; ++c) {
        bool taken = false;
        for (i64 q = 0; q < r; ++q) taken = taken || TAKEN;
        if (taken) continue;
        if (best < 0 || row[c] ORDER row[best] || (row[c] != row[c] && row[best] == row[best]))
          best = c;
      }
      y[i * most + r] = row[best < 0 ? 0 : best];
      at[i * most + r] = best < 0 ? 0 : best;
    }
  }
}
"""


@pytest.mark.parametrize(
    ("taken", "order", "status"),
    [
        ("at[i * most + q] == c", ">", Status.VALID),
        ("at[i * most + q] == c", ">=", Status.VALID),
        ("row[at[i * most + q]] == row[c]", ">", Status.WRONG_VALUES),
    ],
)
async def test_among_equal_values_topk_may_take_any_but_none_twice(forge, taken, order, status):
    body = TOPK.replace("TAKEN", taken).replace("ORDER", order)
    args = "in0 out0 out1 i64:in0.shape[0] i64:in0.shape[1] i64:out0.shape[1]"
    verdict = await judged(forge, "aten::topk", args, body)
    assert verdict.status == status, verdict


async def test_topk_may_not_name_one_place_for_several_equal_values(forge):
    body = TOPK.replace("TAKEN", "at[i * most + q] == c").replace("ORDER", ">")
    twice = "for (i64 r = 1; r < most; ++r) if (y[i * most + r] == y[i * most + r - 1]) "
    twice += "at[i * most + r] = at[i * most + r - 1];"
    body = body.replace("    }\n  }\n}", f"    }}\n    {twice}\n  }}\n}}")
    args = "in0 out0 out1 i64:in0.shape[0] i64:in0.shape[1] i64:out0.shape[1]"
    verdict = await judged(forge, "aten::topk", args, body)
    assert verdict.status == Status.WRONG_VALUES, verdict
    assert verdict.evidence["rule"] == "selection"
    assert "named twice" in verdict.reason


SILU = """
KERNEL k(const uint16_t* x, uint16_t* y, i64 n) {
  EACH(n) {
    float v = bits((uint32_t)x[i] << 16);
    float r = v / (1.f + expf(-v));
    uint32_t u = word(r);
    if (r == r) u += STEP;
    y[i] = u >> 16;
  }
}
"""


@pytest.mark.parametrize(
    ("step", "status"),
    [("0x7fffu + ((u >> 16) & 1)", Status.VALID), ("0", Status.WRONG_VALUES)],
)
async def test_sixteen_bit_results_are_rounded_and_not_cut(forge, step, status):
    body = SILU.replace("STEP", step)
    verdict = await judged(forge, "aten::silu", "in0 out0 i64:in0.numel", body)
    assert verdict.status == status, verdict


PRODUCT = """
KERNEL k(const float* a, const float* b, float* y, i64 n, i64 cols, i64 terms) {
  EACH(n) {
    float sum = 0.f;
    for (i64 t = 0; t < terms; ++t) {
      float p = a[i / cols * terms + t], q = b[i % cols * terms + t];
      sum += FORM;
    }
    y[i] = DONE;
  }
}
"""


@pytest.mark.parametrize(
    ("operator", "form", "done"),
    [
        ("aten::einsum", "p * q", "sum"),
        ("aten::cdist", "(p - q) * (p - q)", "sqrtf(sum)"),
    ],
)
async def test_how_long_a_sum_is_comes_from_the_operator(forge, operator, form, done):
    args = "in0 in1 out0 i64:out0.numel i64:out0.shape[1] i64:in0.shape[1]"
    body = PRODUCT.replace("FORM", form).replace("DONE", done)
    verdict = await judged(forge, operator, args, body)
    assert verdict.status == Status.VALID, verdict
    assert verdict.evidence["terms"] == 5000


async def test_a_promotion_has_more_draws_and_repeats_than_a_quick_look(forge):
    body = EXP.replace("$form", "expf(x[i])")
    args = "in0 out0 i64:in0.numel"
    found = {}
    for tier in ("quick", "full", "promotion"):
        text = f"{body}// {tier}\n"
        verdict = await judged(forge, "aten::exp", args, text, tier=tier)
        assert verdict.status == Status.VALID, verdict
        assert verdict.evidence["policy"] == tier
        found[tier] = verdict.evidence
    quick, full, promotion = (found[t]["draws"] for t in ("quick", "full", "promotion"))
    assert quick == ["captured", "nudged", "resampled", "normal", "special"]
    assert set(quick) < set(full)
    assert len(promotion) == 1 + 3 * (len(full) - 1)
    assert found["promotion"]["repeats"] >= 20


async def test_what_one_value_would_do_for_is_not_promoted(forge):
    body = EXP.replace("$form", "x[i] != x[i] ? x[i] : 2.f")
    verdict = await judged(forge, "aten::clamp", "in0 out0 i64:in0.numel", body)
    assert verdict.status == Status.VALID
    with pytest.raises(BadOption, match="out0 is nearly one value") as refused:
        await judged(forge, "aten::clamp", "in0 out0 i64:in0.numel", body, tier="promotion")
    assert "capture on inputs for which the operator does something" in str(refused.value)
