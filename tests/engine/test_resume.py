"""Processes killed at any moment, and two engines on one project: nothing reported is lost."""

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import ChildDied, StaleLease
from kernelforge_engine.exchanges import Proposal
from kernelforge_engine.records import Status
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.parametrize("forge", ["cpu"], indirect=True)

JUDGE, RUNNER, BUILDER = "worker.judge", "kernelforge_engine.runner", "kernelforge_engine.builder"
ARENA = "kernelforge-arena"  # a Runner that has a candidate holds it, one that waits does not
RELU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
// NAME
"""


def relu(name):
    """A valid candidate that no other test submits."""
    return RELU.replace("NAME", name)


def silent(_progress):
    pass


class Outcome:
    """What a submission that runs beside the test came to."""

    def __init__(self, forge, name):
        self._forge, self._text = forge, relu(name)
        self.submission = self.error = None

    async def __call__(self):
        try:
            self.submission = await self._forge.submit("aten::relu", self._text)
        except ChildDied as error:
            self.error = error


@pytest.fixture(autouse=True)
async def runners_of_others_are_gone(processes):
    await processes.let_go(RUNNER, ARENA)


async def nodes(forge):
    return [node.id for node in await forge.engine.tree(forge.variants["aten::relu"].id)]


async def test_a_judge_killed_while_idle_is_replaced(forge, processes):
    first = (await forge.submit("aten::relu", relu("first"))).node
    await processes.kill(await processes.appears(JUDGE))
    second = (await forge.submit("aten::relu", relu("second"))).node
    assert {first.id, second.id} <= set(await nodes(forge))


async def test_a_submission_survives_the_judge_that_was_judging_it(forge, processes):
    judged = Outcome(forge, "judge killed")
    judge = await processes.appears(JUDGE)
    async with anyio.create_task_group() as group:
        group.start_soon(judged)
        runner = await processes.appears(RUNNER, parent=judge, holding=ARENA)
        await processes.kill(judge)
        await processes.gone([runner])
    assert judged.submission.verdict.status == Status.VALID
    assert judged.submission.node.id in await nodes(forge)


async def test_a_runner_killed_by_somebody_else_is_no_verdict(forge, processes):
    judged = Outcome(forge, "runner killed")
    async with anyio.create_task_group() as group:
        group.start_soon(judged)
        await processes.kill(await processes.appears(RUNNER, holding=ARENA))
    assert judged.submission.verdict.status == Status.VALID


async def test_a_runner_killed_twice_is_a_verdict_that_names_the_signal(forge, processes):
    judged = Outcome(forge, "runner killed twice")
    async with anyio.create_task_group() as group:
        group.start_soon(judged)
        first = await processes.appears(RUNNER, holding=ARENA)
        await processes.kill(first)
        await processes.kill(await processes.appears(RUNNER, but=first, holding=ARENA))
    verdict = judged.submission.verdict
    assert (verdict.status, judged.submission.node) == (Status.CRASHED, None)
    assert "SIGKILL, twice" in verdict.reason


async def test_a_benchmark_survives_the_runner_that_was_timed(forge, processes):
    node = (await forge.submit("aten::relu", relu("timed"))).node
    await processes.let_go(RUNNER, ARENA)
    timed = []

    async def benchmark():
        timed.append(await forge.engine.benchmark(node.id, silent))

    async with anyio.create_task_group() as group:
        group.start_soon(benchmark)
        await processes.kill(await processes.appears(RUNNER, holding=ARENA))
    assert timed[0].timing is not None
    assert (await forge.engine.node(node.id)).timing == timed[0].timing


async def compiling(processes, but=0):
    """A Builder at work, which has a process below it; one that waits has none."""
    with anyio.fail_after(60):
        while True:
            for pid in processes.below(os.getpid(), BUILDER):
                if pid != but and processes.below(pid):
                    return pid
            await anyio.sleep(0.005)


async def test_a_killed_builder_is_started_again(forge, processes):
    judged = Outcome(forge, "builder killed")
    async with anyio.create_task_group() as group:
        group.start_soon(judged)
        await processes.kill(await compiling(processes))
    assert judged.submission.verdict.status == Status.VALID


async def test_two_killed_builders_are_an_error_and_no_attempt(forge, processes):
    before = await forge.engine.attempts(forge.variants["aten::relu"].id)
    judged = Outcome(forge, "builder killed twice")
    async with anyio.create_task_group() as group:
        group.start_soon(judged)
        first = await compiling(processes)
        await processes.kill(first)
        await processes.kill(await compiling(processes, but=first))
    assert "The Builder process ended with SIGKILL" in str(judged.error)
    assert await forge.engine.attempts(forge.variants["aten::relu"].id) == before
    await judged()
    assert judged.submission.verdict.status == Status.VALID


async def project(forge):
    return Path((await forge.engine.status()).project)


async def test_two_servers_share_a_tree_without_losing_or_doubling_a_node(forge):
    variant = forge.variants["aten::relu"].id
    found = []

    async def submit(engine, name):
        proposal = Proposal(text=relu(name), variant_id=variant)
        found.append((await engine.submit(proposal, silent)).node.id)

    before = await nodes(forge)
    async with Engine.open(resolve(await project(forge))) as other:
        async with anyio.create_task_group() as group:
            for engine, name in ((forge.engine, "one"), (other, "other")):
                group.start_soon(submit, engine, "shared")
                group.start_soon(submit, engine, name)
        assert sorted(n.id for n in await other.tree(variant)) == sorted(await nodes(forge))
    assert len(await nodes(forge)) == len(before) + 3
    assert len(found) == 4
    assert set(await nodes(forge)) == {*before, *found}


async def test_a_lease_lives_and_dies_in_the_project_and_not_in_a_server(forge):
    variant, folder = forge.variants["aten::relu"].id, await project(forge)
    async with Engine.open(resolve(folder)) as gone:
        kept = (await gone.select(variant, holder="gone")).lease
    async with Engine.open(replace(resolve(folder), lease_seconds=0.0)) as gone:
        late = (await gone.select(variant, holder="gone")).lease
    with pytest.raises(StaleLease, match="expired"):
        await forge.submit("aten::relu", relu("late"), lease_id=late.id)
    submission = await forge.submit("aten::relu", relu("leased"), lease_id=kept.id)
    assert submission.node.parent_id == kept.parent_id
    with pytest.raises(StaleLease, match="been used"):
        await forge.submit("aten::relu", relu("again"), lease_id=kept.id)


async def test_a_writer_waits_for_another_process_that_writes(forge):
    variant = forge.variants["aten::relu"].id
    leases = []

    async def select():
        leases.append((await forge.engine.select(variant, holder="waiting")).lease)

    locking = sqlite3.connect(await project(forge) / "forge.db", isolation_level=None)
    locking.execute("BEGIN IMMEDIATE")
    async with anyio.create_task_group() as group:
        group.start_soon(select)
        await anyio.sleep(0.3)
        assert leases == []
        locking.execute("COMMIT")
    locking.close()
    assert len(leases) == 1
