"""Candidates for a shape family: one source, judged, timed and exported for all of its sizes."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, MeasureRequest, Proposal
from kernelforge_engine.records import Outcome, SizeTiming, Status, Timing
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.trees import Trees
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.calm

BACKENDS = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]

MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        total = 0
        for length in LENGTHS:
            total = total + torch.nn.functional.softplus(x[:length].clone()).sum()
        return total


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(20, 4096)
"""
LENGTHS = (12, 13, 14, 16)

SOFTPLUS = {
    "cpu": """
#include <cmath>
#include <cstdint>
extern "C" void k(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 20.f ? x[i] : log1pf(expf(x[i]));
}
""",
    "cuda": """
extern "C" __global__ void k(const float* x, float* y, long long n) {
  long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) y[i] = x[i] > 20.f ? x[i] : log1pf(expf(x[i]));
}
""",
}
TIMING = Timing(
    outcome=Outcome.FASTER, speedup=2.0, low=1.9, high=2.1, eager_us=10.0, candidate_us=5.0,
    scope="O",
)  # fmt: skip


def silent(_progress):
    pass


def source(backend, count, body=None):
    grid = f'grid = ["ceil_div({count}, 256)"]\nblock = [256]\n' if backend == "cuda" else ""
    header = (
        f'/* kernelforge\n[[launch]]\nkernel = "k"\n{grid}args = ["in0", "out0", "i64:{count}"]'
    )
    return f"{header}\n*/\n{body or SOFTPLUS[backend]}"


def family_of(cards, operator):
    found = [v for c in cards for v in c.variants if v.family and v.call.operator == operator]
    return max(found, key=lambda v: len(v.family.members))


@pytest.fixture(scope="module", params=BACKENDS)
async def grown(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.py"
    file.write_text(MODEL.replace("LENGTHS", str(LENGTHS)))
    async with Engine.open(resolve(tmp_path_factory.mktemp("project"))) as engine:
        await engine.capture(
            CaptureRequest(model=f"{file}:make_model", device=request.param), silent
        )
        variant = family_of(await engine.cards(), "aten::softplus")
        yield engine, variant, request.param, file


async def submitted(engine, variant, text):
    return await engine.submit(Proposal(text=text, variant_id=variant.id), silent)


async def test_lengths_of_a_loop_are_one_family_beside_its_variants(grown):
    engine, variant, _, _ = grown
    assert [m.sizes for m in variant.family.members] == [(n,) for n in LENGTHS]
    assert variant.family.held_out == ((15,),)
    assert all(m.examples for m in variant.family.members)
    [card] = [c for c in await engine.cards() if c.operator == "aten::softplus"]
    assert sum(v.family is None for v in card.variants) == len(LENGTHS)
    assert card.calls == len(LENGTHS)


async def test_kernel_for_every_size_is_valid_and_judged_where_nobody_called_it(grown):
    engine, variant, backend, _ = grown
    submission = await submitted(engine, variant, source(backend, "in0.numel"))
    assert submission.verdict.status == Status.VALID, submission.verdict
    judged = submission.verdict.evidence["sizes"]
    assert set(judged) >= {"s0 = 12", "s0 = 15", "s0 = 16"}
    assert "captured" not in judged["s0 = 15"]
    assert "captured" in judged["s0 = 12"]
    assert submission.verdict.evidence["held_out_unjudged"] == []


async def test_kernel_with_a_size_baked_in_is_refused_naming_a_size(grown):
    engine, variant, backend, _ = grown
    baked = variant.call.inputs[0].numel
    submission = await submitted(engine, variant, source(backend, str(baked)))
    assert submission.node is None
    # Which size is judged first, a smaller or a larger one, depends on which one took most time.
    assert submission.verdict.status in {Status.MEMORY_VIOLATION, Status.WRONG_STRUCTURE}
    assert re.match(r"at s0 = \d+: ", submission.verdict.reason)


async def test_kernel_that_knows_the_members_only_fails_at_a_held_out_size(grown):
    engine, variant, backend, _ = grown
    body = SOFTPLUS[backend].replace("y[i] =", "y[i] = n == 15 * 4096 ? 0.f :")
    submission = await submitted(engine, variant, source(backend, "in0.numel", body))
    assert submission.verdict.status == Status.WRONG_VALUES
    assert submission.verdict.reason.startswith("at s0 = 15: ")


async def test_header_without_a_value_at_one_size_is_refused_naming_it(grown):
    engine, variant, backend, _ = grown
    text = source(backend, "4096 * in0.shape[0] / (in0.shape[0] - 13)")
    submission = await submitted(engine, variant, text)
    assert submission.verdict.status == Status.REJECTED_SOURCE
    assert "at s0 = 1" in submission.verdict.reason


async def test_benchmark_times_the_dearest_and_the_ends(grown):
    engine, variant, backend, _ = grown
    submission = await submitted(engine, variant, source(backend, "in0.numel") + "// timed\n")
    timing = (await engine.benchmark(submission.node.id, silent)).timing
    sizes = [t.sizes for t in timing.sizes]
    assert sizes[0] == variant.family.dearest.sizes
    assert {(12,), (16,)} <= set(sizes)
    assert timing.sizes[0].speedup == timing.speedup
    assert all(t.candidate_us > 0 for t in timing.sizes)


async def test_family_is_exported_as_one_entry_for_every_member_and_hits_them_all(grown, tmp_path):
    engine, variant, backend, file = grown
    node = await timed(engine, variant, source(backend, "in0.numel") + "// all\n", {})
    path = tmp_path / "all.cast"
    cast = await engine.export(path, node_ids=(node.id,))
    assert len(cast.entries) == len(LENGTHS)
    assert {e.node_id for e in cast.entries} == {node.id}
    assert sum(e.calls for e in cast.entries) == len(LENGTHS)
    assert sum(e.share for e in cast.entries) == pytest.approx(variant.share)
    request = MeasureRequest(model=f"{file}:make_model", device=backend, cast=path)
    (measured,) = (await engine.measure(request, silent)).rows
    assert measured.hits >= len(LENGTHS)
    assert measured.fallbacks.get("aten::softplus", {}).get("guard", 0) == 0


async def test_members_next_to_a_size_that_was_slower_are_left_to_eager(grown, tmp_path):
    engine, variant, backend, _ = grown
    slower = {(12,): Outcome.SLOWER}
    node = await timed(engine, variant, source(backend, "in0.numel") + "// slower\n", slower)
    cast = await engine.export(tmp_path / "few.cast", node_ids=(node.id,))
    assert [e.variant for e in cast.entries] == ["f32[16, 4096], beta=1, threshold=20"]


async def test_call_that_two_nodes_could_serve_goes_to_the_larger_lower_bound(grown, tmp_path):
    engine, variant, backend, _ = grown
    text = source(backend, "in0.numel")
    whole = await timed(engine, variant, text + "// whole\n", {})
    [card] = [c for c in await engine.cards() if c.operator == "aten::softplus"]
    exact = next(v for v in card.variants if v.call.inputs[0].shape[0] == 13 and not v.family)
    single = (await submitted(engine, exact, text + "// single\n")).node
    for low, kept in ((1.5, whole.id), (1.95, single.id)):
        await file_timing(engine, single.id, replace(TIMING, low=low))
        cast = await engine.export(tmp_path / f"{kept}.cast", node_ids=(whole.id, single.id))
        served = {e.variant.partition(",")[0]: e.node_id for e in cast.entries}
        assert served == dict.fromkeys(served, whole.id) | {"f32[13": kept}
        assert len(cast.entries) == len(LENGTHS)


async def test_node_is_judged_again_where_a_later_capture_has_sizes_outside_its_range(
    tmp_path_factory,
):
    file = tmp_path_factory.mktemp("model") / "model.py"
    async with Engine.open(resolve(tmp_path_factory.mktemp("project"))) as engine:

        async def captured(lengths):
            file.write_text(MODEL.replace("LENGTHS", str(lengths)))
            await engine.capture(CaptureRequest(model=f"{file}:make_model"), silent)
            return family_of(await engine.cards(), "aten::softplus")

        text = source("cpu", "in0.numel")
        variant = await captured((4, 5, 7))
        first = await timed(engine, variant, text, {})
        later = await captured((5, 6, 9))
        assert later.id == variant.id
        folder = tmp_path_factory.mktemp("cast")
        cast = await engine.export(folder / "a.cast", node_ids=(first.id,))
        assert [e.variant.partition(",")[0] for e in cast.entries] == ["f32[5", "f32[6"]
        again = await submitted(engine, later, text)
        assert again.node.id == first.id
        assert "s0 = 9" in again.verdict.evidence["sizes"]
        known = await submitted(engine, later, text)
        assert known.verdict == again.verdict
        cast = await engine.export(folder / "b.cast", node_ids=(first.id,))
        assert [e.variant.partition(",")[0] for e in cast.entries] == ["f32[5", "f32[6"]


GATHER = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i64:in1.numel", "i64:in0.shape[1]"]
*/
#include <cstdint>
extern "C" void k(const float* x, const int64_t* i, float* y, int64_t n, int64_t cols) {
  for (int64_t e = 0; e < n; ++e) y[e] = x[i[e] * cols + e % cols];
}
"""


async def test_places_drawn_for_a_held_out_size_exist_in_it(tmp_path):
    file = tmp_path / "model.py"
    body = """        for length in (8, 14, 16):
            index = torch.arange(length)[:, None].expand(length, 32).clone()
            total = total + torch.gather(x[:length, :32].clone(), 0, index).sum()
"""
    start, end = MODEL.index("        for length"), MODEL.index("        return total")
    file.write_text(MODEL[:start] + body + MODEL[end:])
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        await engine.capture(CaptureRequest(model=f"{file}:make_model"), silent)
        variant = family_of(await engine.cards(), "aten::gather")
        submission = await submitted(engine, variant, GATHER)
    assert submission.verdict.status == Status.VALID, submission.verdict
    evidence = submission.verdict.evidence
    assert evidence["held_out_unjudged"] == []
    for (size,) in variant.family.held_out:
        assert {"resampled", "normal"} <= set(evidence["sizes"][f"s0 = {size}"])


async def timed(engine, variant, text, outcomes):
    """A node with a timing of its ends on record: faster where `outcomes` does not say else."""
    node = (await submitted(engine, variant, text)).node
    ends = (variant.family.members[0].sizes, variant.family.members[-1].sizes)
    sizes = tuple(
        SizeTiming(
            sizes=values,
            outcome=outcomes.get(values, TIMING.outcome),
            **{
                k: getattr(TIMING, k)
                for k in ("speedup", "low", "high", "eager_us", "candidate_us")
            },
        )
        for values in ends
    )
    await file_timing(engine, node.id, replace(TIMING, sizes=sizes))
    return node


async def file_timing(engine, node_id, timing):
    """What a benchmark that came to `timing` leaves in the project."""
    folder = Path((await engine.status()).project)
    async with Database.open(folder, None) as database:
        await Trees(database).file_timing(node_id, timing)
