"""A device must show that it computes before anything is judged on it."""

import pytest
import torch

from kernelforge_engine.errors import DeviceUnwell
from kernelforge_engine.records import Status
from kernelforge_engine.worker.health import check

DEVICES = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]
WELL = """/* kernelforge
[[launch]]
kernel = "k"
GRID
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" KIND void k(const float* x, float* y, long long n) {
  FAULT
  LOOP y[i] = x[i] < 0.f ? 0.f : x[i];
}
"""
WORDS = {
    "cpu": {"GRID": "", "KIND": "", "LOOP": "for (long long i = 0; i < n; ++i)"},
    "cuda": {
        "GRID": 'grid = ["ceil_div(in0.numel, 256)"]\nblock = [256]',
        "KIND": "__global__",
        "LOOP": "const long long i = blockIdx.x * 256ll + threadIdx.x; if (i < n)",
    },
}


def source(backend, fault=""):
    text = WELL.replace("FAULT", fault)
    for word, code in WORDS[backend].items():
        text = text.replace(word, code)
    return text


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_that_computes_is_well(device):
    check(torch.device(device))


def test_a_device_that_cannot_compute_is_named_with_what_to_do_next():
    with pytest.raises(DeviceUnwell, match=r"meta .*\. Next: look at nvidia-smi"):
        check(torch.device("meta"))


@pytest.mark.parametrize("forge", DEVICES, indirect=True)
async def test_after_a_candidate_that_crashed_the_next_one_is_judged_as_usual(forge):
    backend = forge.variants["aten::relu"].call.backend
    bad = await forge.submit("aten::relu", source(backend, "*(volatile float*)8 = 1.f;"))
    assert bad.verdict.status in (Status.CRASHED, Status.MEMORY_VIOLATION), bad.verdict
    good = await forge.submit("aten::relu", source(backend))
    assert good.verdict.status == Status.VALID, good.verdict
