"""Verdicts on honest and dishonest kernels, through the engine, on every backend of the machine."""

from string import Template

import pytest

from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.records import Outcome, Status

HEADER = """/* kernelforge
[let]
n = "in0.numel"
$extra
[[launch]]
kernel = "k"
$grid
args = ["in0", "out0", "i64:n"]
*/
"""
GRID = 'grid = ["ceil_div(n, 256)"]\nblock = [256]'

# `EACH { ... }` runs its body for every i below n, on either backend.
PRELUDE = {
    "cpu": """
#include <cmath>
#include <cstdint>
#include <cstdlib>
#define KERNEL extern "C" void
#define EACH for (int64_t i = 0; i < n; ++i)
#define CRASH abort()
""",
    "cuda": """
#define KERNEL extern "C" __global__ void
#define int64_t long long
#define EACH for (int64_t i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll)
#define CRASH __trap()
""",
}


def source(backend, body, *, extra="", prelude=""):
    header = Template(HEADER).substitute(extra=extra, grid=GRID if backend == "cuda" else "")
    return header + PRELUDE[backend] + prelude + body


RELU = """
KERNEL k(const float* x, float* y, int64_t n) { EACH y[i] = x[i] < 0.f ? 0.f : x[i]; }
"""

GELU = """
KERNEL k(const float* x, float* y, int64_t n) {
  EACH y[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678118654752f));
}
"""

BAD = {
    "crash": ("CRASH;", Status.CRASHED),
    "hang": ("volatile int64_t s = 0; while (n) s = s + 1; y[0] = s;", Status.TIMED_OUT),
    "writes past the end": (
        "EACH { y[i] = x[i] < 0.f ? 0.f : x[i]; if (i == 0) y[n] = 1.f; }",
        Status.MEMORY_VIOLATION,
    ),
    "writes before the start": (
        "EACH { y[i] = x[i] < 0.f ? 0.f : x[i]; if (i == 0) y[-1] = 1.f; }",
        Status.MEMORY_VIOLATION,
    ),
    "zeros": ("EACH y[i] = 0.f;", Status.WRONG_VALUES),
    "its input": ("EACH y[i] = x[i];", Status.WRONG_VALUES),
    "nothing": ("", Status.WRONG_STRUCTURE),
    "all but the last element": (
        "EACH if (i < n - 1) y[i] = x[i] < 0.f ? 0.f : x[i];",
        Status.WRONG_STRUCTURE,
    ),
    "changes its input": (
        "EACH { y[i] = x[i] < 0.f ? 0.f : x[i]; ((float*)x)[i] = y[i]; }",
        Status.MUTATED_INPUT,
    ),
    "drops NaN": ("EACH y[i] = x[i] > 0.f ? x[i] : 0.f;", Status.WRONG_VALUES),
    # On the CPU a poison NaN survives an addition unchanged, so the element looks unwritten.
    "adds to what was there": (
        "EACH y[i] += x[i] < 0.f ? 0.f : x[i];",
        (Status.WRONG_STRUCTURE, Status.WRONG_VALUES),
    ),
    "is right for small inputs only": (
        "EACH y[i] = x[i] < 0.f ? 0.f : (x[i] > 6.f ? 6.f : x[i]);",
        Status.WRONG_VALUES,
    ),
}


async def test_an_honest_kernel_becomes_a_node(forge):
    for operator, body in (("aten::relu", RELU), ("aten::gelu", GELU)):
        submission = await forge.submit(operator, source(backend(forge), body))
        assert submission.verdict.status == Status.VALID, submission.verdict
        assert submission.node is not None


def backend(forge):
    return forge.variants["aten::relu"].call.backend


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_kernel_is_refused_with_its_status(forge, name):
    body, expected = BAD[name]
    text = f"\nKERNEL k(const float* x, float* y, int64_t n) {{ {body} }}\n"
    submission = await forge.submit("aten::relu", source(backend(forge), text))
    accepted = expected if isinstance(expected, tuple) else (expected,)
    assert submission.verdict.status in accepted, submission.verdict
    assert submission.node is None
    again = await forge.submit("aten::relu", source(backend(forge), RELU))
    assert again.verdict.status == Status.VALID


async def test_the_tanh_approximation_of_gelu_is_not_gelu(forge):
    body = """
KERNEL k(const float* x, float* y, int64_t n) {
  EACH y[i] = 0.5f * x[i] * (1.f + tanhf(0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}
"""
    submission = await forge.submit("aten::gelu", source(backend(forge), body))
    assert submission.verdict.status == Status.WRONG_VALUES
    assert "rule T" in submission.verdict.reason


async def test_reading_a_dirty_workspace_is_nondeterministic(forge):
    body = """
KERNEL k(const float* x, float* y, int64_t n, const unsigned char* dirt) {
  EACH y[i] = x[i] < 0.f ? 0.f : x[i] + (dirt[0] == 0x7f ? 1.f : 0.f);
}
"""
    text = source(backend(forge), body, extra='[workspace.ws0]\nbytes = "64"')
    text = text.replace('"i64:n"]', '"i64:n", "ws0"]')
    submission = await forge.submit("aten::relu", text)
    assert submission.verdict.status == Status.NONDETERMINISTIC


async def test_source_that_cannot_be_used_is_answered_with_what_to_change(forge):
    rejected = await forge.submit("aten::relu", "int main() {}")
    assert rejected.verdict.status == Status.REJECTED_SOURCE
    assert "launch header" in rejected.verdict.reason
    refused = await forge.submit("aten::relu", source(backend(forge), RELU.replace("y[i]", "z[i]")))
    assert refused.verdict.status == Status.COMPILE_FAILED
    assert "z" in refused.verdict.log


async def test_a_failed_proposal_is_kept_with_its_verdict(forge):
    await forge.submit("aten::relu", "int main() {}", author="me", note="an idea")
    attempts = await forge.engine.attempts(forge.variants["aten::relu"].id)
    assert (attempts[0].author, attempts[0].note) == ("me", "an idea")
    assert attempts[0].verdict.status == Status.REJECTED_SOURCE


async def test_a_slow_kernel_is_not_faster(forge):
    body = """
KERNEL k(const float* x, float* y, int64_t n) {
  EACH {
    float v = x[i];
    for (int r = 0; r < 3000; ++r) v = v * 1.0000001f + 1e-30f;
    y[i] = x[i] < 0.f ? 0.f : (v == 12345.f ? v : x[i]);
  }
}
"""
    submission = await forge.submit("aten::relu", source(backend(forge), body))
    assert submission.verdict.status == Status.VALID, submission.verdict
    node = await forge.engine.benchmark(submission.node.id, lambda _progress: None)
    assert node.timing.outcome == Outcome.SLOWER
    assert node.timing.high < 1
    root, *_ = await forge.engine.tree(node.variant_id)
    assert (root.visits, node.visits) == (2, 1)


LAYER_NORM = """
KERNEL k(const float* x, const float* w, const float* b, float* y, int64_t rows, float eps) {
  int64_t n = rows;
  EACH {
    const float* row = x + i * 64;
    float mean = 0.f, square = 0.f;
    for (int c = 0; c < 64; ++c) mean += row[c] / 64.f;
    for (int c = 0; c < 64; ++c) square += (row[c] - mean) * (row[c] - mean) / 64.f;
    float scale = 1.f / sqrtf(square + eps);
    for (int c = 0; c < 64; ++c) y[i * 64 + c] = (row[c] - mean) * scale;
  }
}
"""
NORM_ARGUMENTS = 'args = ["in0", "in0", "in0", "out0", "i64:in0.numel / 64", "f32:eps"]'


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("", ""), Status.VALID),
        (("square + eps", "square"), Status.WRONG_VALUES),
        (("square + eps", "square * (64.f / 63.f) + eps"), Status.WRONG_VALUES),
        (("(row[c] - mean) * scale", "row[c] * scale"), Status.WRONG_VALUES),
    ],
)
async def test_each_part_of_a_formula_counts(forge, change, expected):
    text = source(backend(forge), LAYER_NORM.replace(*change) if change[0] else LAYER_NORM)
    text = text.replace('args = ["in0", "out0", "i64:n"]', NORM_ARGUMENTS)
    submission = await forge.submit("aten::layer_norm", text)
    assert submission.verdict.status == expected, submission.verdict


async def test_a_kernel_that_ignores_indexes_it_has_not_seen_is_refused(forge):
    body = """
KERNEL k(const float* table, const int64_t* rows, float* y, int64_t n) {
  EACH y[i] = table[(rows[i / 64] & 3) * 64 + i % 64];
}
"""
    text = source(backend(forge), body).replace(
        'args = ["in0", "out0", "i64:n"]', 'args = ["in0", "in1", "out0", "i64:out0.numel"]'
    )
    submission = await forge.submit("aten::embedding", text.replace("int64_t*", "long long*"))
    assert submission.verdict.status == Status.WRONG_VALUES, submission.verdict


async def test_work_that_is_done_only_while_it_is_watched_is_found_out(forge):
    if backend(forge) == "cuda":
        pytest.skip("device code cannot keep a pointer of the host between launches")
    body = """
static const float* first = 0;
KERNEL k(const float* x, float* y, int64_t n) {
  if (!first) first = x;
  if (x == first) EACH y[i] = x[i] < 0.f ? 0.f : x[i];
}
"""
    submission = await forge.submit("aten::relu", source("cpu", body))
    assert submission.verdict.status == Status.VALID, submission.verdict
    with pytest.raises(KernelForgeError, match="does not do its work on every call"):
        await forge.engine.benchmark(submission.node.id, lambda _progress: None)
