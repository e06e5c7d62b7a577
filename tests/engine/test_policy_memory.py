"""Candidates that remember, trust memory, or have not met a value, on every backend."""

from string import Template

import pytest

from kernelforge_engine.records import Status

MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x, index):
        torch.round(x)
        torch.nn.functional.embedding(index, x)
        return torch.relu(x) + torch.roll(x, 3, 1)


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(48, 64), torch.tensor([3, 1, 2, 7])
"""
HEADER = """/* kernelforge
$extra
[[launch]]
kernel = "k"
$grid
args = [$args]
*/
"""
PRELUDE = {
    "cpu": """
#include <cmath>
#include <cstdint>
#define KERNEL extern "C" void
#define EACH for (int64_t i = 0; i < n; ++i)
""",
    "cuda": """
#define KERNEL extern "C" __global__ void
#define int64_t long long
#define EACH for (int64_t i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll)
""",
}


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.py"
    file.write_text(MODEL)
    return file


async def judged(forge, operator, body, *, args='"in0", "out0", "i64:in0.numel"', extra=""):
    backend = forge.variants["aten::relu"].call.backend
    grid = "grid = [64]\nblock = [256]" if backend == "cuda" else ""
    header = Template(HEADER).substitute(extra=extra, grid=grid, args=args)
    return (await forge.submit(operator, header + PRELUDE[backend] + body)).verdict


RELU = "KERNEL k(const float* x, float* y, int64_t n) { EACH { $form } }"


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ("y[i] = x[i] < 0.f ? 0.f : x[i];", Status.VALID),
        (
            "y[i] = x[i] < 0.f ? 0.f : (x[i] > 65504.f && x[i] < 1e38f ? 65504.f : x[i]);",
            Status.WRONG_VALUES,
        ),
        ("y[i] = x[i] < 0.f || fabsf(x[i]) < 1.1754943e-38f ? 0.f : x[i];", Status.WRONG_VALUES),
        (
            "float r = x[i] < 0.f ? 0.f : x[i]; if (!(fabsf(y[i]) < 100.f)) y[i] = r;",
            Status.NONDETERMINISTIC,
        ),
    ],
)
async def test_values_at_the_edges_and_memory_that_looks_like_results(forge, form, status):
    verdict = await judged(forge, "aten::relu", RELU.replace("$form", form))
    assert verdict.status == status, verdict


async def test_a_workspace_from_the_call_before_does_not_excuse_the_work(forge):
    body = """
KERNEL k(const float* x, float* y, int64_t n, unsigned* done) {
  EACH { if (done[i] != 77u) y[i] = x[i] < 0.f ? 0.f : x[i]; done[i] = 77u; }
}
"""
    args = '"in0", "out0", "i64:in0.numel", "ws0"'
    extra = '[workspace.ws0]\nbytes = "4 * in0.numel"'
    verdict = await judged(forge, "aten::relu", body, args=args, extra=extra)
    assert verdict.status == Status.NONDETERMINISTIC, verdict
    assert "on every call" in verdict.reason


async def test_results_of_the_call_before_are_not_results_of_this_one(forge):
    if forge.variants["aten::relu"].call.backend == "cuda":
        pytest.skip("device code cannot keep memory of the host between launches")
    body = """
static thread_local float kept[1 << 16], first = 0.f, last = 0.f;
KERNEL k(const float* x, float* y, int64_t n) {
  if (x[0] != first || x[n - 1] != last)
    EACH kept[i] = x[i] < 0.f ? 0.f : x[i];
  first = x[0], last = x[n - 1];
  EACH y[i] = kept[i];
}
"""
    verdict = await judged(forge, "aten::relu", body)
    assert verdict.status == Status.WRONG_VALUES, verdict
    assert verdict.evidence["draw"] == "nudged"


@pytest.mark.parametrize(
    ("form", "status"),
    [("copysignf(rintf(x[i]), x[i])", Status.VALID), ("floorf(x[i] + 0.5f)", Status.WRONG_VALUES)],
)
async def test_halves_are_rounded_as_eager_rounds_them(forge, form, status):
    verdict = await judged(forge, "aten::round", RELU.replace("$form", f"y[i] = {form};"))
    assert verdict.status == status, verdict


@pytest.mark.parametrize(
    ("value", "status"), [("v", Status.VALID), ("(v == 0.f ? 0.f : v)", Status.WRONG_VALUES)]
)
async def test_what_only_moves_keeps_the_sign_of_its_zeros(forge, value, status):
    form = f"float v = x[i / 64 * 64 + (i + 61) % 64]; y[i] = {value};"
    verdict = await judged(forge, "aten::roll", RELU.replace("$form", form))
    assert verdict.status == status, verdict


@pytest.mark.parametrize(
    ("value", "status"), [("v", Status.VALID), ("(r == 0 ? 0.f : v)", Status.WRONG_VALUES)]
)
async def test_the_first_and_the_last_row_of_a_table_are_looked_up(forge, value, status):
    body = """
KERNEL k(const float* table, const long long* rows, float* y, int64_t n) {
  EACH { long long r = rows[i / 64]; float v = table[r * 64 + i % 64]; y[i] = VALUE; }
}
""".replace("VALUE", value)
    args = '"in0", "in1", "out0", "i64:out0.numel"'
    verdict = await judged(forge, "aten::embedding", body, args=args)
    assert verdict.status == status, verdict
