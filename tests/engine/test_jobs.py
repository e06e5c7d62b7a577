"""Jobs whose process ends, or whose disk is full, before their answer was fetched."""

import os
import subprocess
import sys
import time

import pytest

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import JobState
from kernelforge_engine.pool.alive import alive
from kernelforge_server.settings import resolve

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
        print((await engine.start_job("capture_model", "key", for_ever)).id, flush=True)
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
        assert (await engine.job(job)).state == JobState.RUNNING
        process.kill()  # and nobody asks how it ended: it stays a zombie
        assert (await engine.wait_job(job, 60.0)).state == JobState.INTERRUPTED


async def test_the_same_call_starts_an_interrupted_job_anew(tmp_path, other):
    process, job = other
    process.kill()

    async def work(_notice):
        return {"answer": 1}

    async with Engine.open(resolve(tmp_path)) as engine:
        again = await engine.start_job("capture_model", "key", work)
        assert again.id != job
        assert (await engine.wait_job(again.id, 60.0)).result == {"answer": 1}


async def test_a_job_whose_end_does_not_fit_on_the_disk_still_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELFORGE_QUOTA_BYTES", "200000")
    long = {"answer": "x" * 500_000}

    async def work(_notice):
        return long

    async with Engine.open(resolve(tmp_path)) as engine:
        for _ in range(2):
            job = await engine.start_job("capture_model", "key", work)
            ended = await engine.wait_job(job.id, 60.0)
            assert (ended.state, ended.result) == (JobState.DONE, long)
    async with Engine.open(resolve(tmp_path)) as engine:
        assert (await engine.job("j1")).state == JobState.INTERRUPTED


def test_a_process_that_took_over_a_number_is_another_one():
    assert alive(os.getpid(), time.time())
    assert not alive(os.getpid(), time.time() - 1e6)
