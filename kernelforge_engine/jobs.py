"""Jobs: slow work in the engine's own task group, so that no client's patience bounds it."""

import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import anyio
from anyio.abc import TaskGroup

from kernelforge_engine.calls import Json
from kernelforge_engine.errors import (
    JobElsewhere,
    KernelForgeError,
    QueueFull,
    StoreUnavailable,
    WorkFailed,
)
from kernelforge_engine.exchanges import Job, JobState, Notice, Progress
from kernelforge_engine.pool.alive import alive
from kernelforge_engine.store.jobs import Jobs

Work = Callable[[Notice], Awaitable[dict[str, Json]]]

MOST_RUNNING = 64
MOST_KEPT = 64  # ended jobs in memory whose answer nobody fetched, or that are not on record

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class _Running:
    job: Job
    ended: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    progress: Progress | None = None
    answered: bool = False
    on_record: bool = False

    def end(
        self, state: JobState, result: dict[str, Json] | None = None, error: str | None = None
    ) -> None:
        """Keep how it ended."""
        self.job = replace(self.job, state=state, result=result, error=error)


class JobRunner:
    """Runs jobs and keeps their results until they were asked for, and in the database for good.

    `_registering` makes a job on disk and its entry here one step: who looks in between would take
    it for the job of a process that is gone.
    """

    def __init__(
        self,
        jobs: Jobs,
        tasks: TaskGroup,
        clock: Callable[[], float],
        redact: Callable[[str], str],
    ) -> None:
        self._jobs, self._tasks, self._clock, self._redact = jobs, tasks, clock, redact
        self._running: dict[str, _Running] = {}
        self._registering = anyio.Lock()

    async def resume(self) -> None:
        """Mark jobs whose process is gone: the same call starts them anew."""
        async with self._registering:
            for job, owner in await self._jobs.running():
                if job.id not in self._running and not _owned(job, owner):
                    await self._file(replace(job, state=JobState.INTERRUPTED))

    async def start(self, kind: str, key: str, work: Work) -> Job:
        """Start work; while a job of the same key runs, or its result was not fetched, attach.

        Raises:
            QueueFull
        """
        async with self._registering:
            for entry in self._running.values():
                if entry.job.key == key and not entry.answered:
                    return entry.job
            if self.running >= MOST_RUNNING:
                raise QueueFull(most=MOST_RUNNING)
            with anyio.CancelScope(shield=True):
                job = await self._jobs.add(kind, key, os.getpid(), self._clock())
                entry = self._running[job.id] = _Running(job=job)
            self._tasks.start_soon(self._run, entry, work)
            return job

    async def _run(self, entry: _Running, work: Work) -> None:
        def notice(progress: Progress) -> None:
            entry.progress = progress

        try:
            with entry.scope:
                entry.end(JobState.DONE, result=await work(notice))
            if entry.scope.cancelled_caught:
                entry.end(JobState.CANCELLED)
        except KernelForgeError as error:
            entry.end(JobState.FAILED, error=self._redact(str(error)))
        except anyio.get_cancelled_exc_class():
            entry.end(JobState.INTERRUPTED)
            raise
        except Exception:
            log.exception("job %s failed", entry.job.id)
            trouble = WorkFailed(
                why=f"an unexpected error ended job {entry.job.id}",
                step="read the server's log on standard error and report it",
            )
            entry.end(JobState.FAILED, error=str(trouble))
        finally:
            with anyio.CancelScope(shield=True):
                entry.on_record = await self._file(entry.job)
            entry.ended.set()
            self._forget()

    def _forget(self) -> None:
        """Drop what the database answers for as well, and the oldest of the rest beyond a bound."""
        ended = [entry for entry in self._running.values() if entry.ended.is_set()]
        wanted = [e.job.id for e in ended if not (e.answered and e.on_record)][-MOST_KEPT:]
        for entry in ended:
            if entry.job.id not in wanted:
                del self._running[entry.job.id]

    async def _file(self, job: Job) -> bool:
        """Put the end of a job on record; on a full disk its caller still gets the answer."""
        try:
            await self._jobs.end(job)
        except StoreUnavailable as error:
            log.warning("the end of job %s is not on record: %s", job.id, error)
            return False
        return True

    async def get(self, job_id: str) -> Job:
        """A job as it is now."""
        entry = self._running.get(job_id)
        if entry is not None:
            return replace(entry.job, progress=entry.progress)
        await self.resume()
        return await self._jobs.get(job_id)

    async def cancel(self, job_id: str) -> Job:
        """End a job and the processes that work on it; one that has ended stays as it is.

        Raises:
            JobElsewhere: it runs in another process.
        """
        entry = self._running.get(job_id)
        if entry is None:
            job = await self.get(job_id)
            if job.state == JobState.RUNNING:
                raise JobElsewhere(job=job_id)
            return job
        entry.scope.cancel()
        await entry.ended.wait()
        return entry.job

    async def wait(self, job_id: str, seconds: float, notice: Notice | None) -> Job:
        """A job when it has ended, or as it is after `seconds`; `notice` hears of its progress."""
        entry = self._running.get(job_id)
        if entry is None:
            return await self._wait_for_other(job_id, seconds)
        with anyio.move_on_after(seconds):
            while not entry.ended.is_set():
                if notice and entry.progress:
                    notice(entry.progress)
                with anyio.move_on_after(1.0):
                    await entry.ended.wait()
        job = replace(entry.job, progress=entry.progress)
        entry.answered = entry.answered or job.state != JobState.RUNNING
        self._forget()
        return job

    async def _wait_for_other(self, job_id: str, seconds: float) -> Job:
        """`wait` for a job that another process on this project runs or ran."""
        with anyio.move_on_after(seconds):
            # Its end is an event in that process: here it can only be looked up.
            while (await self.get(job_id)).state == JobState.RUNNING:  # noqa: ASYNC110
                await anyio.sleep(1.0)
        return await self.get(job_id)

    @property
    def running(self) -> int:
        """How many jobs run in this process."""
        return sum(not entry.ended.is_set() for entry in self._running.values())


def _owned(job: Job, owner: int) -> bool:
    """Whether the process that started a job runs; this one holds its own jobs in memory."""
    return owner != os.getpid() and alive(owner, job.created_at)
