"""What compute-sanitizer finds at promotion, through the engine, on device code."""

import pytest

from kernelforge_engine.builder.toolkit import compute_sanitizer
from kernelforge_engine.records import Status

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(compute_sanitizer() is None, reason="compute-sanitizer is not installed"),
    pytest.mark.parametrize("forge", ["cuda"], indirect=True),
]

RELU = """/* kernelforge
[workspace.ws0]
bytes = "4096"
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)"]
block = [256]
args = ["in0", "out0", "ws0", "i64:in0.numel"]
*/
extern "C" __global__ void k(const float* x, float* y, float* scratch, long long n) {
  __shared__ float near[256];
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  const float v = i < n ? x[i] : 0.f;
  CODE
  if (i < n) y[i] = v < 0.f ? 0.f : v;
}
"""
# What is read goes to the workspace: a load of which nothing is used is compiled away.
HONEST = "near[threadIdx.x] = v; __syncthreads(); scratch[threadIdx.x] = near[threadIdx.x ^ 32];"
READS_ON = "scratch[threadIdx.x] = x[n + 8];"
READS_FRESH = "scratch[threadIdx.x] = scratch[threadIdx.x + 512];"
RACES = "near[threadIdx.x] = v; scratch[threadIdx.x] = near[threadIdx.x ^ 32];"
LEFT_OUT = "__syncwarp(0x0000ffffu);"


async def promoted(forge, code, name):
    text = RELU.replace("CODE", f"{code}  // {name}")
    return (await forge.submit("aten::relu", text, tier="promotion")).verdict


async def test_an_honest_kernel_is_promoted_with_what_was_run(forge):
    verdict = await promoted(forge, HONEST, "honest")
    assert verdict.status == Status.VALID, verdict
    found = verdict.evidence["sanitizers"]
    assert found["draws"] == ["captured", "normal", "special"]
    tools = {name: said for name, said in found.items() if name != "draws"}
    assert tools == dict.fromkeys(
        ("memcheck", "initcheck", "racecheck", "synccheck"), "nothing found"
    )


@pytest.mark.parametrize(
    ("code", "status", "rule"),
    [
        (READS_ON, Status.MEMORY_VIOLATION, "memcheck"),
        (READS_FRESH, Status.NONDETERMINISTIC, "initcheck"),
        (RACES, Status.NONDETERMINISTIC, "racecheck"),
        (LEFT_OUT, Status.WRONG_STRUCTURE, "synccheck"),
    ],
    ids=["memcheck", "initcheck", "racecheck", "synccheck"],
)
async def test_a_fault_that_leaves_no_trace_is_found_at_promotion_only(forge, code, status, rule):
    full = await forge.submit("aten::relu", RELU.replace("CODE", f"{code}  // {rule}"))
    assert full.verdict.status == Status.VALID, full.verdict
    verdict = await promoted(forge, code, rule)
    assert (verdict.status, verdict.evidence.get("rule")) == (status, rule), verdict
    assert verdict.evidence["kernel"] == "k", verdict
    assert "0x" not in verdict.reason
    assert "/" not in verdict.reason
