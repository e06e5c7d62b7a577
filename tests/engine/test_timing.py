"""Benchmarks through the engine: what is timed, what is checked, and who waits for whom."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
import torch

from kernelforge_engine.errors import NodeInvalid
from kernelforge_engine.records import Status
from kernelforge_server.settings import resolve

pytestmark = [pytest.mark.calm, pytest.mark.parametrize("forge", ["cpu"], indirect=True)]

HEADER = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "ARGUMENT", "i64:in0.numel"]
*/
"""
RELU = (
    HEADER.replace("ARGUMENT", "out0")
    + """
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
"""
)
MULTIPLY = (
    HEADER.replace("ARGUMENT", "in1")
    + """
extern "C" void k(float* x, const float* y, long n) {
  static const float* first = x;
  if (LAZY && x != first) return;
  for (long i = 0; i < n; ++i) x[i] *= y[i];
}
"""
)


def silent(_progress):
    pass


async def node_of(forge, operator, text):
    submission = await forge.submit(operator, text)
    assert submission.verdict.status == Status.VALID, submission.verdict
    return submission.node


async def test_each_benchmark_of_a_variant_has_to_show_more_than_the_one_before(forge):
    nodes = [await node_of(forge, "aten::relu", f"{RELU}// {name}") for name in "ab"]
    found = []
    for node in (*nodes, nodes[0]):
        timing = (await forge.engine.benchmark(node.id, silent)).timing
        found.append((timing.evidence["attempt"], timing.evidence["confidence"]))
    assert [attempt for attempt, _ in found] == [1, 2, 3]
    slower = {confidence for _, confidence in found if confidence == 0.99}
    levels = [confidence for _, confidence in found if confidence not in slower]
    assert levels == sorted(levels)


async def test_a_timing_says_what_machine_and_what_control_it_had(forge):
    node = await node_of(forge, "aten::relu", f"{RELU}// recorded")
    timing = (await forge.engine.benchmark(node.id, silent)).timing
    assert timing.evidence["why"]
    machine = timing.evidence["machine"]
    assert machine["device"]
    assert machine["threads"] == torch.get_num_threads()  # also after a verdict that took fewer
    assert {"load"} <= set(machine["before"]) & set(machine["after"])
    if timing.evidence["why"] != "slower in a first glance":
        assert timing.evidence["control"]["low"] <= timing.evidence["control"]["high"]


async def test_an_operator_in_place_is_timed_on_the_same_input_at_every_call(forge):
    (name,) = [n for n in forge.variants if n.startswith("aten::mul_")]
    node = await node_of(forge, name, MULTIPLY.replace("LAZY", "0"))
    assert (await forge.engine.benchmark(node.id, silent)).timing is not None
    lazy = await node_of(forge, name, MULTIPLY.replace("LAZY", "1"))
    with pytest.raises(NodeInvalid, match="does not do its work on every call"):
        await forge.engine.benchmark(lazy.id, silent)


@pytest.fixture
async def cache(forge):
    """The folder that every engine of this user shares."""
    return resolve(Path((await forge.engine.status()).project)).cache


class Heard:
    """What a benchmark said, and an event for when it waits."""

    def __init__(self):
        self.words, self.waits = [], anyio.Event()

    def __call__(self, progress):
        self.words.append(progress.text)
        if progress.text == "waiting for the device":
            self.waits.set()


async def test_a_timing_waits_for_that_of_another_engine(forge, cache):
    node = await node_of(forge, "aten::relu", f"{RELU}// waits")
    heard, file = Heard(), cache / "locks" / "cpu.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    async with anyio.create_task_group() as group:
        group.start_soon(forge.engine.benchmark, node.id, heard)
        await heard.waits.wait()
        await anyio.sleep(0.2)
        assert heard.words == ["waiting for the device"]
        os.close(descriptor)
    assert heard.words[1] == "timing it against eager"
    assert (await forge.engine.node(node.id)).timing is not None


HOLD = """
import fcntl, os, sys, time
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(cache):
    """A process that holds the lock as an engine would."""
    command = [sys.executable, "-c", HOLD, str(cache / "locks" / "cpu.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


async def test_an_engine_that_was_killed_while_timing_holds_nobody_up(forge, holder):
    node = await node_of(forge, "aten::relu", f"{RELU}// killed")
    heard = Heard()
    async with anyio.create_task_group() as group:
        group.start_soon(forge.engine.benchmark, node.id, heard)
        await heard.waits.wait()
        holder.kill()
    assert (await forge.engine.node(node.id)).timing is not None


async def test_a_build_that_was_asked_for_during_a_timing_still_gets_its_turn(forge):
    node = await node_of(forge, "aten::relu", f"{RELU}// first")
    found = []

    async def submit(name):
        found.append((await node_of(forge, "aten::relu", f"{RELU}// {name}")).id)

    async with anyio.create_task_group() as group:
        group.start_soon(forge.engine.benchmark, node.id, silent)
        for name in ("second", "third", "fourth"):
            group.start_soon(submit, name)
    assert len(set(found)) == 3
    assert (await forge.engine.node(node.id)).timing is not None
