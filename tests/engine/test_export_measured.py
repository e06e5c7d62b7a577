"""What an export does with kernels that the whole model is slower with."""

from dataclasses import replace

import pytest

from kernelforge_engine.cast import manifest
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import ModelNotFaster, ModelNotMeasured
from kernelforge_engine.exchanges import CaptureRequest, MeasureRequest, Proposal
from kernelforge_engine.measurements import Check
from kernelforge_engine.records import Outcome, Timing
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.trees import Trees
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.calm

CHECK = Check(seconds=60.0)
TIMING = Timing(
    outcome=Outcome.FASTER, speedup=2.0, low=1.9, high=2.1, eager_us=10.0, candidate_us=5.0,
    scope="O",
)  # fmt: skip
# Eager takes several operators for it, so this one is faster on any machine.
ROLL = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  y[0] = x[n - 1];
  for (long i = 1; i < n; ++i) y[i] = x[i - 1];
}
"""
# Right, and slower than eager beyond any doubt.
RELU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (int times = 0; times < 40; ++times)
    for (long i = 0; i < n; ++i) {
      volatile float seen = x[i];
      y[i] = seen < 0.f ? 0.f : seen;
    }
}
"""
MODEL = """
import torch


def make_model():
    return lambda x: torch.relu(torch.roll(x, 1))


def make_inputs():
    return torch.linspace(-1, 1, 4096).reshape(64, 64)
"""


def silent(_progress):
    pass


@pytest.fixture(scope="module")
async def forge(tmp_path_factory):
    """An engine, the file of its model, and the nodes of a kernel that helps and of one that a
    benchmark is said to have found faster."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "model.py").write_text(MODEL)
    async with Engine.open(resolve(folder / "project")) as engine:
        request = CaptureRequest(model=f"{folder / 'model.py'}:make_model")
        capture = await engine.capture(request, silent)
        cards = {c.operator: c for c in await engine.cards(capture.id)}
        nodes = []
        for operator, text in (("aten::roll", ROLL), ("aten::relu", RELU)):
            variant = cards[operator].variants[0].id
            submission = await engine.submit(Proposal(text=text, variant_id=variant), silent)
            assert submission.node, submission.verdict
            nodes.append(submission.node.id)
        async with Database.open(folder / "project", None) as database:
            for node in nodes:
                await Trees(database).file_timing(node, TIMING)
        yield engine, folder / "model.py", *nodes


async def test_a_kernel_that_slows_the_model_is_left_out_and_named(forge, tmp_path):
    engine, file, fast, slow = forge
    steps = []
    cast = await engine.export(tmp_path / "a.cast", check=CHECK, notice=steps.append)
    assert [entry.node_id for entry in cast.entries] == [fast]
    assert set(cast.whole_model.dropped) == {slow}
    assert "us more with it" in cast.whole_model.dropped[slow]
    assert cast.whole_model.low <= cast.whole_model.speedup <= cast.whole_model.high
    assert (cast.whole_model.slowing, cast.whole_model.unknown) == ({}, {})
    assert manifest.read(tmp_path / "a.cast").header.whole_model == cast.whole_model
    assert f"the model without {slow}" in {step.text for step in steps}
    request = MeasureRequest(model=f"{file}:make_model", cast=tmp_path / "a.cast", attribution=True)
    measured = await engine.measure(request, silent)
    assert [kernel.node_id for kernel in measured.kernels] == [fast]
    assert measured.rows[0].run_hits == 1


async def test_it_is_kept_where_that_is_asked_for_and_the_cast_says_so(forge, tmp_path):
    engine, _, fast, slow = forge
    check = replace(CHECK, keep_all=True)
    cast = await engine.export(tmp_path / "a.cast", check=check)
    assert {entry.node_id for entry in cast.entries} == {fast, slow}
    assert set(cast.whole_model.slowing) == {slow}
    assert cast.whole_model.high < 1
    assert (await engine.inspect_cast(tmp_path / "a.cast")).whole_model == cast.whole_model


async def test_nothing_is_written_where_no_kernel_is_left(forge, tmp_path):
    engine, _, _, slow = forge
    with pytest.raises(ModelNotFaster, match=f"slower with them: {slow}: aten::relu") as refused:
        await engine.export(tmp_path / "a.cast", node_ids=(slow,), check=CHECK)
    assert "--keep-all" in str(refused.value)
    assert not (tmp_path / "a.cast").exists()


async def test_what_time_did_not_reach_is_kept_and_said(forge, tmp_path):
    engine, _, fast, _ = forge
    check = Check(seconds=1e-6)
    cast = await engine.export(tmp_path / "a.cast", node_ids=(fast,), check=check)
    assert "of the time allowed" in cast.whole_model.unknown[fast]
    assert cast.whole_model.speedup is None
    assert "8 quartets" in cast.whole_model.uncompared


async def test_an_export_that_does_not_measure_says_nothing_of_the_model(forge, tmp_path):
    engine, *nodes = forge
    cast = await engine.export(tmp_path / "a.cast")
    assert {entry.node_id for entry in cast.entries} == set(nodes[1:])
    assert cast.whole_model is None


async def test_a_model_that_cannot_be_run_is_no_reason_to_write_unmeasured(forge, tmp_path):
    engine, file, fast, _ = forge
    moved = file.rename(file.with_name("moved.py"))
    try:
        with pytest.raises(ModelNotMeasured, match="no readable file") as refused:
            await engine.export(tmp_path / "a.cast", node_ids=(fast,), check=CHECK)
    finally:
        moved.rename(file)
    assert "--no-measure" in str(refused.value)
    assert list(tmp_path.iterdir()) == []


async def test_a_capture_remembers_how_its_model_was_loaded(forge):
    engine, file, *_ = forge
    (capture,) = await engine.captures()
    assert capture.model == f"{file}:make_model"
    assert (capture.random_weights, capture.dtype, capture.generate_tokens) == (False, None, 0)
