"""What the sanitizers find at promotion, through the engine."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kernelforge_engine.records import Status


def _has_sanitizers() -> bool:
    if shutil.which("g++") is None:
        return False
    asked = ["g++", "-print-file-name=libasan.so"]
    return Path(subprocess.run(asked, capture_output=True, text=True).stdout.strip()).is_absolute()


pytestmark = [
    pytest.mark.skipif(not _has_sanitizers(), reason="g++ has no sanitizer libraries here"),
    pytest.mark.parametrize("forge", ["cpu"], indirect=True),
]

RELU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
#include <cstdint>
extern "C" void k(const float* x, float* y, int64_t n) {
  BEFORE
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
  AFTER
}
"""
READS_ON = "volatile float next = x[n]; (void)next;"
READS_BACK = "volatile float last = x[-1]; (void)last;"
LOCAL = "volatile float kept[4] = {0}; volatile int64_t at = n - n + 4; kept[at - 8] = 1.f;"
OVERFLOW = "volatile int big = 2147483647; volatile int more = big + 1; (void)more;"
SHIFT = "volatile int wide = 32; volatile int gone = 1 << wide; (void)gone;"


def relu(before="", after=""):
    return RELU.replace("BEFORE", before).replace("AFTER", after)


async def promoted(forge, text):
    return await forge.submit("aten::relu", text, tier="promotion")


async def test_an_honest_kernel_is_promoted_with_what_was_run(forge):
    submission = await promoted(forge, relu())
    assert submission.verdict.status == Status.VALID, submission.verdict
    found = submission.verdict.evidence["sanitizers"]
    assert found["address sanitizer"] == "nothing found"
    assert found["undefined behavior sanitizer"] == "nothing found"
    assert found["draws"] == ["captured", "normal", "special"]


@pytest.mark.parametrize(
    ("code", "status", "rule"),
    [
        (READS_ON, Status.MEMORY_VIOLATION, "address sanitizer"),
        (READS_BACK, Status.MEMORY_VIOLATION, "address sanitizer"),
        (OVERFLOW, Status.WRONG_STRUCTURE, "undefined behavior sanitizer"),
        (SHIFT, Status.WRONG_STRUCTURE, "undefined behavior sanitizer"),
    ],
)
async def test_a_fault_that_leaves_no_trace_is_found_at_promotion_only(forge, code, status, rule):
    full = await forge.submit("aten::relu", relu(code))
    assert full.verdict.status == Status.VALID, full.verdict
    verdict = (await promoted(forge, relu(code))).verdict
    assert verdict.status == status, verdict
    assert verdict.evidence["rule"] == rule
    assert verdict.evidence["at"].startswith("candidate.cpp:8"), verdict
    said = verdict.reason + verdict.log
    assert "/" not in said
    assert "0x" not in said
    node = await forge.engine.node(full.node.id)
    assert node.verdict.status == status, "a node that fails its promotion is a node no more"


async def test_a_candidate_cannot_ask_whether_it_is_watched(forge):
    code = f"\n#ifndef __SANITIZE_ADDRESS__\n{READS_ON}\n#endif\n"
    verdict = (await promoted(forge, relu(after=code))).verdict
    assert verdict.status == Status.MEMORY_VIOLATION, verdict


async def test_a_node_is_judged_again_when_it_is_promoted(forge):
    text = relu("// first as usual")
    first = await forge.submit("aten::relu", text)
    assert "sanitizers" not in first.verdict.evidence
    second = await promoted(forge, text)
    assert second.node.id == first.node.id
    assert "sanitizers" in second.node.verdict.evidence
