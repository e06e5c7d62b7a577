"""The bundled models, with their real weights and inputs, from capture to a measured cast."""

from pathlib import Path

import pytest

import kernelforge_server
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, MeasureRequest, Proposal
from kernelforge_engine.records import Outcome, Status
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.calm

EXAMPLES = Path(kernelforge_server.__file__).parent / "examples"
# What the library serves in each model, and enough of it to be worth a cast.
MODELS = {
    "sentence_encoder.py": {"aten::gelu", "aten::layer_norm", "aten::tanh"},
    "speech_detector.py": {"aten::conv1d", "aten::lstm_cell", "aten::sqrt"},
}


def silent(_progress):
    pass


@pytest.mark.parametrize("name", MODELS)
async def test_a_real_model_goes_from_capture_to_a_measured_cast(name, tmp_path):
    file = EXAMPLES / name
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        capture = await engine.capture(CaptureRequest(model=f"{file}:make_model"), silent)
        assert capture.output_drift == 0
        cards = {c.operator: c for c in await engine.cards(capture.id)}
        faster = [await proposed(engine, cards[op].variants[0].id) for op in sorted(MODELS[name])]
        nodes = tuple(node for node in faster if node)
        measured = await measured_with(engine, file, nodes, tmp_path) if nodes else None
    if measured is None:
        pytest.skip("no kernel was faster on this machine, so there is no cast to measure")
    (row,) = measured.rows
    assert row.run_hits > 0
    assert row.max_relative < 1e-3


async def measured_with(engine, file, nodes, folder):
    path = folder / "model.cast"
    await engine.export(path, node_ids=nodes)
    return await engine.measure(MeasureRequest(model=f"{file}:make_model", cast=path), silent)


async def proposed(engine, variant_id):
    """The library's first offer is valid; its node, if it is faster here."""
    (offer, *_) = await engine.offers(variant_id)
    submission = await engine.submit(Proposal(text=offer.text, variant_id=variant_id), silent)
    assert submission.verdict.status == Status.VALID, (offer.name, submission.verdict)
    node = await engine.benchmark(submission.node.id, silent)
    return node.id if node.timing.outcome == Outcome.FASTER else None
