"""Who waits for a device, and who does not."""

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from kernelforge_engine.exchanges import Proposal
from kernelforge_engine.records import Status
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.calm

HEADER = '/* kernelforge\n[[launch]]\nkernel = "k"\nargs = ["in0", "out0", "i64:in0.numel"]\n'
GRID = 'grid = ["ceil_div(in0.numel, 128)", 1, 1]\nblock = [128, 1, 1]\n'
BODY = "y[i] = x[i] < 0.f ? 0.f : x[i];"
RELU = {
    "cpu": HEADER + '*/\nextern "C" void k(const float* x, float* y, long n) {\n'
    "  for (long i = 0; i < n; ++i) " + BODY + "\n}\n",
    "cuda": HEADER + GRID + '*/\nextern "C" __global__ void k(const float* x, float* y, long n) {\n'
    "  long i = blockIdx.x * 128l + threadIdx.x;\n  if (i < n) " + BODY + "\n}\n",
}
ARENA = "kernelforge-arena"  # a Runner that has a candidate holds it, one that waits does not
# So slow that a benchmark needs one glance.
SLOW = RELU["cpu"].replace(BODY, "for (volatile int j = 0; j < 2000; ++j) " + BODY)
on_a_gpu = pytest.mark.parametrize(
    "forge", [pytest.param("cuda", marks=pytest.mark.gpu)], indirect=True
)
on_the_cpu = pytest.mark.parametrize("forge", ["cpu"], indirect=True)


def backend_of(forge):
    return forge.variants["aten::relu"].call.backend


@contextmanager
def lent(forge, project):
    """The device of a forge in the hands of another engine."""
    name = {"cpu": "cpu", "cuda": "cuda-0"}[backend_of(forge)]
    file = resolve(Path(project)).cache / "locks" / f"{name}.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


class Heard:
    """Progress, with an event for a certain one."""

    def __init__(self, text):
        self._text, self.said = text, anyio.Event()

    def __call__(self, progress):
        if progress.text == self._text:
            self.said.set()


async def submitted(forge, text, heard):
    source = RELU[backend_of(forge)] + text
    proposal = Proposal(text=source, variant_id=forge.variants["aten::relu"].id)
    return await forge.engine.submit(proposal, heard)


async def test_a_build_waits_for_no_device(forge, tmp_path):
    with lent(forge, tmp_path):
        refused = await submitted(forge, "no code", lambda _: None)
    assert refused.verdict.status == Status.COMPILE_FAILED


@on_the_cpu
async def test_a_verdict_on_the_cpu_waits_for_nobody(forge, tmp_path):
    with lent(forge, tmp_path):
        valid = await submitted(forge, "// beside a timing", lambda _: None)
    assert valid.verdict.status == Status.VALID


@on_a_gpu
async def test_a_verdict_on_a_gpu_waits_for_whoever_has_it(forge, tmp_path):
    heard, found = Heard("waiting for the device"), []

    async def submit():
        found.append((await submitted(forge, "// waits", heard)).verdict.status)

    async with anyio.create_task_group() as group:
        with lent(forge, tmp_path):
            group.start_soon(submit)
            await heard.said.wait()
            assert found == []
    assert found == [Status.VALID]


@on_a_gpu
async def test_a_build_goes_on_while_a_gpu_is_timed(forge):
    node = (await submitted(forge, "// timed", lambda _: None)).node
    heard, order = Heard("timing it against eager"), []

    async def benchmark():
        await forge.engine.benchmark(node.id, heard)
        order.append("timed")

    async with anyio.create_task_group() as group:
        group.start_soon(benchmark)
        await heard.said.wait()
        await submitted(forge, "no code, again", lambda _: None)
        order.append("built")
    assert order == ["built", "timed"]


@on_the_cpu
async def test_a_cancelled_timing_ends_its_processes_and_leaves_the_device(forge, processes):
    node = (await forge.submit("aten::relu", SLOW)).node
    heard = Heard("timing it against eager")

    async def work(notice):
        def both(progress):
            notice(progress)
            heard(progress)

        await forge.engine.benchmark(node.id, both)
        return {}

    job = await forge.engine.jobs.start("benchmark", {"node_id": node.id}, work)
    await heard.said.wait()
    judge = await processes.appears("worker.judge")
    working = [judge, await processes.appears("engine.runner", parent=judge, holding=ARENA)]
    assert (await forge.engine.jobs.cancel(job.id)).state == "cancelled"
    await processes.gone(working)
    assert (await forge.engine.benchmark(node.id, lambda _: None)).timing is not None
