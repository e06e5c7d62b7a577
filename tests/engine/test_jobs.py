"""Jobs whose process ends, or whose disk is full, before their answer was fetched."""

import contextlib
import gc
import os
import subprocess
import sys
import time
import weakref

import anyio
import pytest

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import JobElsewhere, UnknownId
from kernelforge_engine.exchanges import CaptureRequest, JobState
from kernelforge_engine.jobs import JobRunner
from kernelforge_engine.pool.alive import alive
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.jobs import Jobs
from kernelforge_server.settings import resolve

CALL = {"model": "m.py"}

SERVER = """
import sys
from pathlib import Path
import anyio
from kernelforge_engine.engine import Engine
from kernelforge_server.settings import resolve


async def for_ever(notice):
    await anyio.sleep_forever()


async def main():
    async with Engine.open(resolve(Path(sys.argv[1]))) as engine:
        job = await engine.jobs.start("capture_model", {"model": "m.py"}, for_ever)
        print(job.id, flush=True)
        await anyio.sleep_forever()


anyio.run(main)
"""


@pytest.fixture
def other(tmp_path):
    """Another server on the same project, with the job it runs."""
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process, process.stdout.readline().strip()
        process.kill()


async def test_the_job_of_a_killed_server_reads_interrupted_for_one_that_ran_beside_it(
    tmp_path, other
):
    process, job = other
    async with Engine.open(resolve(tmp_path)) as engine:
        assert (await engine.jobs.get(job)).state == JobState.RUNNING
        process.kill()  # and nobody asks how it ended: it stays a zombie
        assert (await engine.jobs.wait(job, 60.0)).state == JobState.INTERRUPTED


async def test_the_same_call_takes_up_an_interrupted_job_under_its_id(tmp_path, other):
    process, job = other
    process.kill()
    process.wait()  # a job of one that is only about to end is attached to

    async with Engine.open(resolve(tmp_path)) as engine:
        assert (await engine.jobs.get(job)).arguments == CALL
        assert (await engine.jobs.start("capture_model", CALL, done)).id == job
        assert (await engine.jobs.wait(job, 60.0)).result == {"answer": 1}


async def test_the_same_call_attaches_to_the_job_of_another_server(tmp_path, other):
    _, job = other
    async with Engine.open(resolve(tmp_path)) as engine:
        assert (await engine.jobs.start("capture_model", CALL, never)).id == job
        another = await engine.jobs.start("capture_model", {"model": "n.py"}, done)
        assert another.id != job


async def never(_notice):
    pytest.fail("work that goes on elsewhere was begun again")


async def done(_notice):
    return {"answer": 1}


async def test_an_end_that_was_told_to_nobody_answers_the_same_call_of_the_next_hour(tmp_path):
    now = 1_000_000.0
    settings = resolve(tmp_path)

    @contextlib.asynccontextmanager
    async def runner():
        async with (
            Database.open(settings.project, None) as database,
            anyio.create_task_group() as tasks,
        ):
            yield JobRunner(Jobs(database), tasks, lambda: now, str)

    async with runner() as jobs:
        first = await jobs.start("benchmark", CALL, done)
        await jobs.wait(first.id, 60.0)
    async with runner() as jobs:  # another process knows it too
        again = await jobs.start("benchmark", CALL, never)
        assert (again.id, again.result) == (first.id, {"answer": 1})
        now += 3601
        late = await jobs.start("benchmark", CALL, done)
        assert late.id != first.id
        await jobs.answered(await jobs.wait(late.id, 60.0))
        assert (await jobs.start("benchmark", CALL, done)).id not in (first.id, late.id)


async def test_a_job_whose_end_does_not_fit_on_the_disk_still_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELFORGE_QUOTA_BYTES", "400000")
    long = {"answer": "x" * 500_000}

    async def work(_notice):
        return long

    async with Engine.open(resolve(tmp_path)) as engine:
        for _ in range(2):
            job = await engine.jobs.start("capture_model", CALL, work)
            ended = await engine.jobs.wait(job.id, 60.0)
            assert (ended.state, ended.result) == (JobState.DONE, long)
    async with Engine.open(resolve(tmp_path)) as engine:
        assert (await engine.jobs.get("j1")).state == JobState.INTERRUPTED


async def test_two_starts_at_one_moment_are_one_job(tmp_path):
    ids = []

    async def work(_notice):
        await anyio.sleep(0.1)
        return {"answer": 1}

    async with Engine.open(resolve(tmp_path)) as engine:

        async def start():
            ids.append((await engine.jobs.start("capture_model", CALL, work)).id)

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(start)
        assert set(ids) == {"j1"}
        assert len(ids) == 4


async def test_a_job_is_not_taken_for_a_lost_one_while_it_starts(tmp_path):
    async with Engine.open(resolve(tmp_path)) as engine:

        async def look():
            while True:
                with contextlib.suppress(UnknownId):
                    await engine.jobs.get("j999")

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(look)
            jobs = [await engine.jobs.start("kind", {"number": i}, done) for i in range(20)]
            for job in jobs:
                await engine.jobs.wait(job.id, 60.0)
            group.cancel_scope.cancel()
    async with Engine.open(resolve(tmp_path)) as engine:
        ended = [await engine.jobs.get(job.id) for job in jobs]
    assert [(e.state, e.result) for e in ended] == [(JobState.DONE, {"answer": 1})] * 20


class Result(dict):
    """A result that can be watched."""


async def test_the_results_of_ended_jobs_do_not_fill_the_memory(tmp_path):
    made = []

    async def work(_notice):
        result = Result(answer=1)
        made.append(weakref.ref(result))
        return result

    async with Engine.open(resolve(tmp_path)) as engine:
        for i in range(100):
            fetched = await engine.jobs.start("kind", {"fetched": i}, work)
            await engine.jobs.wait(fetched.id, 60.0)
        left = [await engine.jobs.start("kind", {"left": i}, work) for i in range(100)]
        with anyio.fail_after(60):
            while (await engine.status()).running_jobs:  # noqa: ASYNC110  nobody may wait for them
                await anyio.sleep(0.05)
        gc.collect()
        assert len(made) == 200
        assert sum(reference() is not None for reference in made) <= 70
        assert (await engine.jobs.get(fetched.id)).result == {"answer": 1}
        assert {(await engine.jobs.get(job.id)).state for job in left} == {JobState.DONE}


def test_a_process_that_took_over_a_number_is_another_one():
    assert alive(os.getpid(), time.time())
    assert not alive(os.getpid(), time.time() - 1e6)


async def test_a_cancelled_job_ends_with_the_processes_that_work_on_it(tmp_path, processes):
    model = tmp_path / "slow.py"
    model.write_text("import time\n\n\ndef make_model():\n    time.sleep(600)\n")
    request = CaptureRequest(model=f"{model}:make_model", device="cpu")
    async with Engine.open(resolve(tmp_path / "project")) as engine:

        async def work(notice):
            await engine.capture(request, notice)
            return {}

        job = await engine.jobs.start("capture_model", CALL, work)
        child = await processes.appears("worker.capture")
        assert (await engine.jobs.cancel(job.id)).state == JobState.CANCELLED
        await processes.gone([child])
        again = await engine.jobs.start("capture_model", CALL, work)
        assert again.id != job.id
        await engine.jobs.cancel(again.id)


async def test_a_job_that_has_ended_stays_as_it_ended_when_it_is_cancelled(tmp_path):
    async with Engine.open(resolve(tmp_path)) as engine:
        job = await engine.jobs.start("capture_model", CALL, done)
        await engine.jobs.wait(job.id, 60.0)
        assert (await engine.jobs.cancel(job.id)).result == {"answer": 1}


async def test_the_job_of_another_server_is_cancelled_there(tmp_path, other):
    _, job = other
    async with Engine.open(resolve(tmp_path)) as engine:
        with pytest.raises(JobElsewhere, match=rf"Next: cancel it there.*{job}"):
            await engine.jobs.cancel(job)
