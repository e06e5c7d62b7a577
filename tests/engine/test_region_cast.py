"""A region from a captured language model to a cast that is judged again, and measured."""

import pytest

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, MeasureRequest, Proposal
from kernelforge_engine.records import Outcome, Status
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.calm

TRIES = 6  # on a busy machine a timing may be inconclusive
MODEL = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def make_model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        use_cache=False,
    )
    return LlamaForCausalLM(config).eval()


def make_inputs():
    return torch.arange(9).reshape(1, 9)
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
# An operator that eager takes several kernels for, inside a region and outside of it. The region
# holds enough small operators that its dispatch is little beside them.
ROLLS = """
import torch


class Part(torch.nn.Module):
    def forward(self, x):
        y = torch.roll(x, 1) + x
        for _ in range(16):
            y = -y
        return y


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        return torch.roll(self.part(self.part(x)), 1)


def make_model():
    return Model()


def make_inputs():
    return torch.linspace(-1, 1, 64).reshape(8, 8)
"""
ROLL = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[(i + 1) % n] = x[i];
}
"""
PART = ROLL.replace("= x[i]", "= x[i] + x[(i + 1) % n]")


def silent(_progress):
    pass


async def faster(engine, variant, text):
    """A node for a variant, once a benchmark found it faster."""
    submission = await engine.submit(Proposal(text=text, variant_id=variant.id), silent)
    assert submission.verdict.status == Status.VALID, submission.verdict.reason
    for _ in range(TRIES):
        node = await engine.benchmark(submission.node.id, silent)
        if node.timing.outcome == Outcome.FASTER:
            return node
    pytest.fail(f"never found faster: {node.timing}")


async def test_an_operator_inside_a_region_is_counted_once(tmp_path):
    file, path = tmp_path / "model.py", tmp_path / "rolls.cast"
    file.write_text(ROLLS)
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        capture = await engine.capture(CaptureRequest(model=f"{file}:make_model"), silent)
        found = {v.call.operator: v for c in await engine.cards(capture.id) for v in c.variants}
        part, roll = found["region::Part"], found["aten::roll"]
        assert (part.calls, roll.calls) == (2, 3)
        nodes = await faster(engine, part, PART), await faster(engine, roll, ROLL)
        both = await engine.export(path, node_ids=tuple(node.id for node in nodes))
        alone = await engine.export(tmp_path / "roll.cast", node_ids=(nodes[1].id,))
        request = MeasureRequest(model=f"{file}:make_model", cast=path, seconds=90.0)
        (row,) = (await engine.measure(request, silent)).rows
    claims = {entry.operator: (entry.calls, entry.share) for entry in both.entries}
    assert claims["region::Part"] == (2, part.share)
    assert claims["aten::roll"] == (1, pytest.approx(roll.share / 3))
    assert (alone.entries[0].calls, alone.entries[0].share) == (3, roll.share)
    assert row.run_hits == 3  # two regions, and the one roll outside of them
    saved = [(node.timing.eager_us - node.timing.candidate_us) for node in nodes]
    assert row.saving.predicted_us == pytest.approx(2 * saved[0] + saved[1])


async def test_a_norm_of_a_language_model_is_exported_and_serves_it(tmp_path):
    file, path = tmp_path / "model.py", tmp_path / "norms.cast"
    file.write_text(MODEL)
    request = CaptureRequest(model=f"{file}:make_model")
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        capture = await engine.capture(request, silent)
        exact = [v for c in await engine.cards(capture.id) for v in c.variants if not v.family]
        (norm,) = [v for v in exact if v.call.operator == "region::LlamaRMSNorm"]
        assert norm.calls == 5
        await faster(engine, norm, RMS)
        summary = await engine.export(path)
        assert [(e.operator, e.calls) for e in summary.entries] == [("region::LlamaRMSNorm", 5)]
        measured = await engine.measure(
            MeasureRequest(model=request.model, cast=path, seconds=90.0), silent
        )
        (rerun,) = await engine.rerun_cast(path, silent)
    assert not measured.failed
    (row,) = measured.rows
    assert row.run_hits == 5
    assert row.max_relative < 1e-5
    assert row.fallbacks["region::LlamaRMSNorm"]["first_call"] == 5
    assert row.saving.predicted_us > 0
    assert rerun.verdict.status == Status.VALID, rerun.why
    assert rerun.now is not None
