"""What Inductor keeps on disk, between processes with a cast and without one."""

import json
import subprocess
import sys

import pytest
import region_cases
import torch

from kernelforge_engine.dispatch.guard import describe

# Kernels whose answers cannot be mistaken for those of torch.
SOFTMAX = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = 1000.f;
}
"""
NORM = SOFTMAX.replace("1000.f", "1000000.f")
PROGRAM = """
import json, sys
import torch
from torch._dynamo.utils import counters
import region_model

def main():
    norm = region_model.RMSNorm()
    torch.manual_seed(0)
    x = torch.randn(6, 16)
    with torch.no_grad():
        compiled = torch.compile(lambda t: (norm(t), torch.softmax(t, -1)), fullgraph=True)
        first, second = compiled(x)
    kinds = ("aot_autograd", "autograd_cache_hit"), ("inductor", "fxgraph_cache_hit")
    taken = sum(counters[kind][name] for kind, name in kinds)
    print(json.dumps([first.max().item(), second.max().item(), taken]))

if sys.argv[1:]:
    from kernelforge_engine import cast
    with cast.load(sys.argv[1]):
        main()
else:
    main()
"""


@pytest.fixture
def program(code, x, tmp_path, monkeypatch):
    """A process that compiles the same model with a cast of these kernels: the largest values it
    got, and whether it took code from the disk."""
    with torch.no_grad():
        softmax = describe(torch.ops.aten.softmax.int, (x, -1), {}, torch.softmax(x, -1))
    norm = region_cases.call_of(code.RMSNorm(), hidden_states=x)
    pairs = {"softmax": (softmax, SOFTMAX), "norm": (norm, NORM)}
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def run(*kernels):
        path = tmp_path / f"{'_'.join(kernels)}.cast"
        if kernels:
            region_cases.write(path, *(pairs[name] for name in kernels))
        done = subprocess.run(
            [sys.executable, "program.py", *([str(path)] if kernels else [])],
            capture_output=True, text=True, cwd=tmp_path, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        *values, taken = json.loads(done.stdout.splitlines()[-1])
        marked = dict(zip(("norm", "softmax"), (value > 100 for value in values), strict=True))
        return {name for name in marked if marked[name]}, bool(taken)

    return run


def test_no_process_takes_code_of_another_kind_from_the_disk(program):
    both, known = ("softmax", "norm"), []
    for kernels in [both, (), both, (), ("softmax",), ("norm",)]:
        served, was_taken = program(*kernels)
        assert served == set(kernels)
        assert was_taken == (kernels in known)
        known.append(kernels)
