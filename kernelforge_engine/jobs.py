"""Jobs: slow work in the engine's own task group, so that no client's patience bounds it."""

import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import anyio
from anyio.abc import TaskGroup

from kernelforge_engine import codec
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
from kernelforge_engine.store.jobs import Asked, Jobs, OnRecord

Work = Callable[[Notice], Awaitable[dict[str, Json]]]

MOST_RUNNING = 64
MOST_KEPT = 64  # ended jobs in memory that could not be put on record
KEPT_SECONDS = 3600.0  # after that, what was asked about may have changed
ENDED = (JobState.DONE, JobState.FAILED)

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class _Running:
    job: Job
    ended: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended_by: JobState = JobState.CANCELLED
    progress: Progress | None = None
    answered: bool = False
    on_record: bool = False

    @property
    def wanted(self) -> bool:
        """Whether the same call is about this job: it goes on, or its end was told to nobody."""
        if self.ended.is_set():
            return self.job.state in ENDED and not self.answered
        return not self.scope.cancel_called

    def end(
        self, state: JobState, result: dict[str, Json] | None = None, error: str | None = None
    ) -> None:
        """Keep how it ended."""
        self.job = replace(self.job, state=state, result=result, error=error)


class JobRunner:
    """Runs jobs and keeps how they end in the database, and in memory what did not fit there.

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
        self.ending = False

    async def resume(self) -> None:
        """Mark jobs whose process is gone: they can be taken up."""
        async with self._registering:
            await self._mark_lost()

    async def _mark_lost(self) -> None:
        for found in await self._jobs.running():
            if found.job.id not in self._running and not _owned(found):
                await self._file(replace(found.job, state=JobState.INTERRUPTED))

    async def start(
        self, kind: str, arguments: dict[str, Json], work: Work, call_key: str | None = None
    ) -> Job:
        """Start work, or attach to the job that the same call started before: while it runs, in
        whichever process, and for an hour after it ended if its end was told to nobody. One that
        was interrupted is taken up, which begins its work anew. A call that was made before with
        the same `call_key` is told of its own job, however long ago and to whomever that was told.

        Raises:
            QueueFull
        """
        key = codec.sha256(codec.dumps({"kind": kind, "arguments": arguments}))
        asked = Asked(kind=kind, key=key, arguments=arguments, call_key=call_key)
        async with self._registering:
            if call_key is not None and (known := await self._of_call(asked)):
                return known
            for entry in self._running.values():
                if entry.job.key == key and entry.wanted:
                    if call_key is not None:
                        await self._jobs.attach(asked, entry.job.id)
                    return entry.job
            await self._mark_lost()
            return await self._begun(asked, work)

    async def _of_call(self, asked: Asked) -> Job | None:
        """The job of a call that was made before, unless it was stopped before its end."""
        await self._mark_lost()
        known = await self._jobs.of_call(asked)
        return known if known and known.state in (JobState.RUNNING, *ENDED) else None

    async def _begun(self, asked: Asked, work: Work) -> Job:
        if self.running >= MOST_RUNNING:
            known = await self._jobs.newest(asked.key)
            if known is None or not self._wanted(known):
                raise QueueFull(most=MOST_RUNNING)
        with anyio.CancelScope(shield=True):
            job, ours = await self._jobs.begin(asked, os.getpid(), self._clock(), self._wanted)
            if ours:
                entry = self._running[job.id] = _Running(job=job)
                self._tasks.start_soon(self._run, entry, work)
        return job

    def _wanted(self, known: OnRecord) -> bool:
        """`_Running.wanted` of a job that is not in memory."""
        if known.job.id in self._running:
            return False
        if known.job.state in ENDED and known.ended_at is not None and not known.answered:
            return self._clock() - known.ended_at < KEPT_SECONDS
        return known.job.state == JobState.RUNNING

    async def _run(self, entry: _Running, work: Work) -> None:
        def notice(progress: Progress) -> None:
            entry.progress = progress

        try:
            with entry.scope:
                entry.end(JobState.DONE, result=await work(notice))
            if entry.scope.cancelled_caught:
                entry.end(entry.ended_by)
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
        """Drop what the database answers for, and the oldest of the rest beyond a bound."""
        ended = [entry for entry in self._running.values() if entry.ended.is_set()]
        kept = [entry.job.id for entry in ended if not entry.on_record][-MOST_KEPT:]
        for entry in ended:
            if entry.job.id not in kept:
                del self._running[entry.job.id]

    async def _file(self, job: Job) -> bool:
        """Put the end of a job on record; on a full disk its caller still gets the answer."""
        try:
            await self._jobs.end(job, self._clock())
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

    async def stop(self) -> None:
        """End every job of this process, which reads interrupted then: it can be taken up."""
        self.ending = True
        running = [entry for entry in self._running.values() if not entry.ended.is_set()]
        for entry in running:
            entry.ended_by = JobState.INTERRUPTED
            entry.scope.cancel()
        for entry in running:
            await entry.ended.wait()

    async def answered(self, job: Job) -> None:
        """Note that the end of a job was told: from now on the same call begins anew."""
        entry = self._running.get(job.id)
        if entry is not None:
            entry.answered = True
        try:
            await self._jobs.answered(job.id)
        except StoreUnavailable as error:
            log.warning("that job %s was answered is not on record: %s", job.id, error)

    async def wait(self, job_id: str, seconds: float, notice: Notice | None = None) -> Job:
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
        return replace(entry.job, progress=entry.progress)

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


def _owned(found: OnRecord) -> bool:
    """Whether the process that started a job runs; this one holds its own jobs in memory."""
    return found.owner != os.getpid() and alive(found.owner, found.job.started_at)
