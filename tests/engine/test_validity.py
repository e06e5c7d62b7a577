"""Nodes that a benchmark found wrong, and which nodes an export takes."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from kernelforge_engine.cast import manifest
from kernelforge_engine.errors import BadOption, NodeInvalid, StaleLease
from kernelforge_engine.exchanges import Proposal
from kernelforge_engine.records import Outcome, Status, Timing
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.trees import Trees

pytestmark = pytest.mark.parametrize("forge", ["cpu"], indirect=True)

RELU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  static const float* first = x;
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
  if (x != first && LAZY) y[0] += 1.f;
}
// NAME
"""
TIMING = Timing(
    outcome=Outcome.FASTER, speedup=2.0, low=1.9, high=2.1, eager_us=10.0, candidate_us=5.0,
    scope="O",
)  # fmt: skip


def relu(name, lazy=0):
    return RELU.replace("NAME", name).replace("LAZY", str(lazy))


def silent(_progress):
    pass


async def file_timing(forge, node_id, timing):
    """What a benchmark that came to `timing` leaves in the project."""
    folder = Path((await forge.engine.status()).project)
    async with Database.open(folder, None) as database:
        await Trees(database).file_timing(node_id, timing)


async def best(forge):
    report = await forge.engine.report()
    (row,) = [r for r in report.rows if r.variant_id == forge.variants["aten::relu"].id]
    return row.node_id


async def test_a_node_whose_timed_output_is_wrong_is_not_valid_any_more(forge, tmp_path):
    text = relu("lazy", lazy=1)
    node = (await forge.submit("aten::relu", text)).node
    await file_timing(forge, node.id, TIMING)
    assert await best(forge) == node.id
    with pytest.raises(NodeInvalid, match=f"Node {node.id} is not valid any more: "):
        await forge.engine.benchmark(node.id, silent)
    found = await forge.engine.node(node.id)
    assert found.verdict.status != Status.VALID
    assert found.timing is None
    assert await best(forge) != node.id
    with pytest.raises(NodeInvalid, match="is not valid any more"):
        await forge.engine.benchmark(node.id, silent)
    with pytest.raises(BadOption, match=f"{node.id}.*is not valid any more"):
        await forge.engine.export(tmp_path / "a.cast", node_ids=(node.id,))
    again = await forge.submit("aten::relu", text)
    assert (again.verdict, again.node) == (found.verdict, None)
    assert again.attempt_id is not None


async def test_a_named_node_is_exported_when_it_was_found_faster_only(forge, tmp_path):
    node = (await forge.submit("aten::relu", relu("named"))).node

    async def refusal():
        with pytest.raises(BadOption) as refused:
            await forge.engine.export(tmp_path / "a.cast", node_ids=(node.id,))
        assert not (tmp_path / "a.cast").exists()
        return str(refused.value)

    assert f"{node.id!r} is not accepted: it has not been benchmarked" in await refusal()
    for outcome in (Outcome.SLOWER, Outcome.INCONCLUSIVE, Outcome.IMPLAUSIBLE):
        await file_timing(forge, node.id, replace(TIMING, outcome=outcome))
        assert f"its benchmark found it {outcome}" in await refusal()
    await file_timing(forge, node.id, TIMING)
    (entry,) = (await forge.engine.export(tmp_path / "a.cast", node_ids=(node.id,))).entries
    assert (entry.node_id, entry.outcome, entry.speedup) == (node.id, Outcome.FASTER, 2.0)


async def test_a_cast_without_a_timing_shows_none(forge, tmp_path):
    node = (await forge.submit("aten::relu", relu("untimed"))).node
    await file_timing(forge, node.id, TIMING)
    await forge.engine.export(tmp_path / "timed.cast", node_ids=(node.id,))
    file = manifest.read(tmp_path / "timed.cast")
    manifest.write(
        tmp_path / "untimed.cast",
        file.header,
        [replace(entry, timing=None) for entry in file.entries],
        sources={entry.source_digest: file.source(entry).text for entry in file.entries},
        binaries={},
    )
    (entry,) = (await forge.engine.inspect_cast(tmp_path / "untimed.cast")).entries
    assert {entry.outcome, entry.eager_us, entry.candidate_us, entry.speedup, entry.low} == {None}


async def test_a_root_is_neither_timed_nor_exported(forge, tmp_path):
    root = (await forge.engine.tree(forge.variants["aten::relu"].id))[0]
    with pytest.raises(BadOption, match="it is eager itself"):
        await forge.engine.benchmark(root.id, silent)
    with pytest.raises(BadOption, match="it is eager itself"):
        await forge.engine.export(tmp_path / "a.cast", node_ids=(root.id,))


async def test_of_two_submissions_under_one_lease_one_becomes_a_node(forge):
    variant = forge.variants["aten::relu"].id
    lease = (await forge.engine.select(variant, holder="two")).lease
    before = len(await forge.engine.tree(variant))
    found, stale = [], []

    async def submit(name):
        proposal = Proposal(text=relu(name), variant_id=variant, lease_id=lease.id)
        try:
            found.append((await forge.engine.submit(proposal, silent)).node.id)
        except StaleLease as error:
            stale.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(submit, "one")
        group.start_soon(submit, "two")
    assert (len(found), len(stale)) == (1, 1)
    assert len(await forge.engine.tree(variant)) == before + 1


async def test_the_same_source_is_the_node_that_it_was(forge):
    variant = forge.variants["aten::relu"].id
    first = (await forge.submit("aten::relu", relu("same"))).node
    lease = (await forge.engine.select(variant, holder="same")).lease
    again = await forge.submit("aten::relu", relu("same"), lease_id=lease.id)
    assert again.node == first
