"""Jobs: slow work in the engine's own task group, so that no client's patience bounds it."""

import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import anyio
from anyio.abc import TaskGroup

from kernelforge_engine.errors import KernelForgeError, WorkFailed
from kernelforge_engine.exchanges import Job, JobState, Notice, Progress
from kernelforge_engine.records import Json
from kernelforge_engine.store.jobs import Jobs

Work = Callable[[Notice], Awaitable[dict[str, Json]]]

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class _Running:
    job: Job
    ended: anyio.Event = field(default_factory=anyio.Event)
    progress: Progress | None = None
    answered: bool = False


class JobRunner:
    """Runs jobs and keeps their results until they were asked for, and in the database for good."""

    def __init__(self, jobs: Jobs, tasks: TaskGroup, clock: Callable[[], float]) -> None:
        self._jobs, self._tasks, self._clock = jobs, tasks, clock
        self._running: dict[str, _Running] = {}

    async def resume(self) -> None:
        """Mark jobs whose process is gone: the same call starts them anew."""
        for job, owner in await self._jobs.running():
            if not _alive(owner):
                await self._jobs.interrupt(job.id)

    async def start(self, kind: str, key: str, work: Work) -> Job:
        """Start work; while a job of the same key runs, or its result was not fetched, attach."""
        for entry in self._running.values():
            if entry.job.key == key and not entry.answered:
                return entry.job
        job = await self._jobs.add(kind, key, os.getpid(), self._clock())
        entry = self._running[job.id] = _Running(job=job)
        self._tasks.start_soon(self._run, entry, work)
        return job

    async def _run(self, entry: _Running, work: Work) -> None:
        def notice(progress: Progress) -> None:
            entry.progress = progress

        try:
            await self._jobs.finish(entry.job.id, await work(notice))
        except KernelForgeError as error:
            await self._jobs.fail(entry.job.id, str(error))
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._jobs.interrupt(entry.job.id)
            raise
        except Exception:
            log.exception("job %s failed", entry.job.id)
            trouble = WorkFailed(
                why=f"an unexpected error ended job {entry.job.id}",
                step="read the server's log on standard error and report it",
            )
            await self._jobs.fail(entry.job.id, str(trouble))
        finally:
            entry.ended.set()

    async def get(self, job_id: str) -> Job:
        """A job as it is now."""
        job = await self._jobs.get(job_id)
        entry = self._running.get(job_id)
        return replace(job, progress=entry.progress) if entry else job

    async def wait(self, job_id: str, seconds: float, notice: Notice | None) -> Job:
        """A job when it has ended, or as it is after `seconds`; `notice` hears of its progress."""
        entry = self._running.get(job_id)
        if entry is None:
            return await self.get(job_id)
        with anyio.move_on_after(seconds):
            while not entry.ended.is_set():
                if notice and entry.progress:
                    notice(entry.progress)
                with anyio.move_on_after(1.0):
                    await entry.ended.wait()
        job = await self.get(job_id)
        entry.answered = entry.answered or job.state != JobState.RUNNING
        return job

    @property
    def running(self) -> int:
        """How many jobs run in this process."""
        return sum(not entry.ended.is_set() for entry in self._running.values())


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process != os.getpid()
