"""A shape family of a region: judged and timed as one, served at every size it was seen with."""

import importlib.util

import pytest
import torch

from kernelforge_engine import cast as casts
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_engine.records import Outcome, Status
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.calm

TRIES = 6  # on a busy machine a timing may be inconclusive
MODEL = """
import torch


class RMSNorm(torch.nn.Module):
    def __init__(self, size=32, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = RMSNorm()

    def forward(self, x):
        return [self.norm(x[:rows]) for rows in (4, 8, 12, 16)]


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(16, 32)
"""
RMS = """/* kernelforge
[let]
cols = "in0.shape[-1]"
[[launch]]
kernel = "rms_norm"
args = ["in0", "in1", "out0", "i32:in0.numel / cols", "i32:cols", "f32:variance_epsilon"]
*/
#include <cmath>
extern "C" void rms_norm(const float* x, const float* w, float* y, int rows, int cols, float eps) {
  for (int r = 0; r < rows; ++r, x += cols, y += cols) {
    float sum = 0.f;
    for (int c = 0; c < cols; ++c) sum += x[c] * x[c];
    const float scale = 1.f / std::sqrt(sum / cols + eps);
    for (int c = 0; c < cols; ++c) y[c] = w[c] * (x[c] * scale);
  }
}
"""


def silent(_progress):
    pass


async def test_a_family_of_a_region_is_served_at_the_sizes_it_was_seen_with(tmp_path):
    file, path = tmp_path / "region_family.py", tmp_path / "family.cast"
    file.write_text(MODEL)
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        capture = await engine.capture(CaptureRequest(model=f"{file}:make_model"), silent)
        (family,) = [
            v
            for c in await engine.cards(capture.id)
            for v in c.variants
            if v.call.operator == "region::RMSNorm" and v.family is not None
        ]
        assert [m.sizes for m in family.family.members] == [(4,), (8,), (12,), (16,)]
        submission = await engine.submit(Proposal(text=RMS, variant_id=family.id), silent)
        assert submission.verdict.status == Status.VALID, submission.verdict.reason
        for _ in range(TRIES):
            node = await engine.benchmark(submission.node.id, silent)
            if all(size.outcome == Outcome.FASTER for size in node.timing.sizes):
                break
        else:
            pytest.fail(f"never found faster: {node.timing}")
        summary = await engine.export(path)
    assert [(e.operator, e.calls) for e in summary.entries] == [("region::RMSNorm", 1)] * 4
    spec = importlib.util.spec_from_file_location("region_family", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model, x = module.make_model(), module.make_inputs()
    with torch.no_grad(), casts.load(path) as cast:
        expected = model(x)
        found = model(x)
        model.norm(x[:5])
        counters = cast.counters()
    assert [s.hits for s in counters.served] == [1, 1, 1, 1]
    assert counters.fallbacks == {"region::RMSNorm": {"first_call": 4, "guard": 1}}
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))
