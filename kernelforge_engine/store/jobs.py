"""Jobs on disk: slow work that outlives the request that started it, and the process."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from kernelforge_engine import codec
from kernelforge_engine.calls import Json
from kernelforge_engine.exchanges import Job, JobState
from kernelforge_engine.store import calls
from kernelforge_engine.store.database import Database, Row
from kernelforge_engine.store.ids import row, tag, unknown


@dataclass(frozen=True, kw_only=True)
class OnRecord:
    """A job with what only its record knows: the process that runs or ran it, when it ended, and
    whether its end was told to whoever asked."""

    job: Job
    owner: int
    ended_at: float | None
    answered: bool


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A call that asks for work.

    Attributes:
        key: the hash of its kind and its arguments.
        call_key: its client's own key for it, None where it gave none.
    """

    kind: str
    key: str
    arguments: dict[str, Json]
    call_key: str | None = None


Wanted = Callable[[OnRecord], bool]


class Jobs:
    """The jobs of a project."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, asked: Asked, runner: int, at: float, wanted: Wanted) -> tuple[Job, bool]:
        """The job for a call, and whether the process `runner` is to run it: the one that this call
        started last where it is `wanted`; else that one again where it was interrupted; else a new
        one. Of two that ask at one moment, by whichever process, one finds the job of the other.
        """
        async with self._database.transaction():
            known = await self.newest(asked.key)
            if known is not None and wanted(known):
                await calls.note(self._database, asked.call_key, "job", row("j", known.job.id))
                return known.job, False
            if known is not None and known.job.state == JobState.INTERRUPTED:
                number = row("j", known.job.id)
                await self._database.execute(
                    """UPDATE jobs SET state = ?, owner = ?, started_at = ?, answered = FALSE
                       WHERE id = ?""",
                    (JobState.RUNNING, runner, at, number),
                )
            else:
                number = await self._database.insert(
                    """INSERT INTO jobs (kind, key, arguments, owner, state, started_at, answered)
                       VALUES (?, ?, ?, ?, ?, ?, FALSE)""",
                    (
                        asked.kind,
                        asked.key,
                        codec.dumps(asked.arguments),
                        runner,
                        JobState.RUNNING,
                        at,
                    ),
                )
            await calls.note(self._database, asked.call_key, "job", number)
        return await self.get(tag("j", number)), True

    async def of_call(self, asked: Asked) -> Job | None:
        """The job that this very call, by its client's key, came to before."""
        number = await calls.came_to(self._database, asked.call_key, "job")
        found = await self._database.row(
            "SELECT * FROM jobs WHERE id = ? AND key = ?", (number, asked.key)
        )
        return None if found is None else _record(found).job

    async def attach(self, asked: Asked, job_id: str) -> None:
        """Record that a call came to a job that was there."""
        async with self._database.transaction():
            await calls.note(self._database, asked.call_key, "job", row("j", job_id))

    async def get(self, job_id: str) -> Job:
        """One job.

        Raises:
            UnknownId: there is none.
        """
        found = await self._database.row("SELECT * FROM jobs WHERE id = ?", (row("j", job_id),))
        if found is None:
            raise unknown("j", job_id)
        return _record(found).job

    async def newest(self, key: str) -> OnRecord | None:
        """The job that the same call started last, if there is one."""
        found = await self._database.row(
            "SELECT * FROM jobs WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)
        )
        return None if found is None else _record(found)

    async def end(self, job: Job, at: float) -> None:
        """Record how a job ended, unless that is on record: its state, its result or its error. The
        arguments of one that was interrupted stay: it may be taken up."""
        result = None if job.result is None else codec.dumps(job.result)
        async with self._database.transaction():
            await self._database.execute(
                """UPDATE jobs SET state = ?, result = ?, error = ?, ended_at = ?,
                                   arguments = CASE WHEN ? THEN arguments END
                   WHERE id = ? AND state = ?""",
                (
                    job.state,
                    result,
                    job.error,
                    at,
                    job.state == JobState.INTERRUPTED,
                    row("j", job.id),
                    JobState.RUNNING,
                ),
            )

    async def answered(self, job_id: str) -> None:
        """Record that the end of a job was told."""
        async with self._database.transaction():
            await self._database.execute(
                "UPDATE jobs SET answered = TRUE WHERE id = ?", (row("j", job_id),)
            )

    async def running(self) -> tuple[OnRecord, ...]:
        """Every job that is recorded as running."""
        rows = await self._database.rows("SELECT * FROM jobs WHERE state = ?", (JobState.RUNNING,))
        return tuple(_record(r) for r in rows)


def _record(found: Row) -> OnRecord:
    job = Job(
        id=tag("j", found["id"]),
        kind=found["kind"],
        key=found["key"],
        arguments=_optional(found["arguments"]),
        state=JobState(found["state"]),
        progress=None,  # only the process that runs a job knows how far it is
        result=_optional(found["result"]),
        error=found["error"],
        started_at=found["started_at"],
    )
    return OnRecord(
        job=job,
        owner=int(found["owner"]),
        ended_at=found["ended_at"],
        answered=bool(found["answered"]),
    )


def _optional(text: str | None) -> dict[str, Json] | None:
    return None if text is None else json.loads(text)
