"""A Runner killed at any step of its protocol costs a fresh Runner and nothing else."""

import os
from pathlib import Path

import pytest

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_engine.records import Status
from kernelforge_server.settings import resolve

STEPS = ("load", "run", "prepare_timing", "sample", "collect")
# Read by every Python that has it on its path. A Runner asks a process that it started at its very
# beginning, since later it can open no file and send no signal: who comes to the step named in the
# mark, while there is a mark, is killed there.
SITE = """
import os, sys

def watched():
    steps, told = os.pipe()
    answers, answering = os.pipe()
    runner = os.getpid()
    if os.fork() == 0:
        os.close(told)
        while kind := os.read(steps, 40).decode():
            try:
                if open(MARK).read() == kind:
                    os.unlink(MARK)
                    os.kill(runner, 9)
            except FileNotFoundError:
                pass
            os.write(answering, b"x")
        os._exit(0)
    os.close(steps)
    from kernelforge_engine.pool import frames
    receive = frames.receive

    def seen(channel, seconds):
        frame = receive(channel, seconds)
        for step in STEPS:
            if f'"kind":"{step}"'.encode() in frame:
                os.write(told, step.encode())
                os.read(answers, 1)
        return frame

    frames.receive = seen

if "kernelforge_engine.runner" in sys.orig_argv:
    watched()
"""
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


def silent(_progress):
    pass


@pytest.fixture(scope="module")
def mark(tmp_path_factory):
    return tmp_path_factory.mktemp("mark") / "step"


@pytest.fixture(scope="module")
async def engine(tmp_path_factory, mark, model_file):
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(
        SITE.replace("MARK", repr(str(mark))).replace("STEPS", repr(STEPS))
    )
    found = resolve(tmp_path_factory.mktemp("project"))
    path = os.pathsep.join(p for p in (str(folder), found.environment.get("PYTHONPATH")) if p)
    found = type(found)(**{**vars(found), "environment": {**found.environment, "PYTHONPATH": path}})
    async with Engine.open(found) as opened:
        yield opened


@pytest.fixture(scope="module")
async def variant(engine, model_file):
    request = CaptureRequest(model=f"{Path(model_file)}:make_model", device="cpu")
    capture = await engine.capture(request, silent)
    cards = await engine.cards(capture.id)
    return next(c for c in cards if c.operator == "aten::relu").variants[0].id


async def valid(engine, variant, name):
    proposal = Proposal(text=RELU.replace("NAME", name), variant_id=variant)
    submission = await engine.submit(proposal, silent)
    assert submission.verdict.status == Status.VALID, submission.verdict
    return submission.node


@pytest.mark.parametrize("step", STEPS)
async def test_a_runner_killed_at_any_step_is_replaced(engine, variant, mark, step, processes):
    judged = step in STEPS[:2]
    if judged:
        mark.write_text(step)
    node = await valid(engine, variant, step)
    if not judged:
        mark.write_text(step)
        timed = await engine.benchmark(node.id, silent)
        assert timed.timing is not None
        assert timed.verdict.status == Status.VALID
    assert not mark.exists(), "no Runner came to this step"
    await valid(engine, variant, f"after {step}")
    await processes.let_go("kernelforge_engine.runner", "kernelforge-arena")
