"""Jobs on disk: slow work that outlives the request that started it."""

import json

from kernelforge_engine import codec
from kernelforge_engine.exchanges import Job, JobState
from kernelforge_engine.store.database import Database, Row
from kernelforge_engine.store.ids import row, tag, unknown


class Jobs:
    """The jobs of a project."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, kind: str, key: str, owner: int, at: float) -> Job:
        """Record a job that starts now in the process `owner`."""
        async with self._database.transaction():
            number = await self._database.insert(
                "INSERT INTO jobs (kind, key, owner, state, created_at) VALUES (?, ?, ?, ?, ?)",
                (kind, key, owner, JobState.RUNNING, at),
            )
        return await self.get(tag("j", number))

    async def get(self, job_id: str) -> Job:
        """One job.

        Raises:
            UnknownId: there is none.
        """
        found = await self._database.row("SELECT * FROM jobs WHERE id = ?", (row("j", job_id),))
        if found is None:
            raise unknown("j", job_id)
        return _job(found)

    async def end(self, job: Job) -> None:
        """Record how a job ended, unless that is on record: its state, its result or its error."""
        result = None if job.result is None else codec.dumps(job.result)
        async with self._database.transaction():
            await self._database.execute(
                "UPDATE jobs SET state = ?, result = ?, error = ? WHERE id = ? AND state = ?",
                (job.state, result, job.error, row("j", job.id), JobState.RUNNING),
            )

    async def running(self) -> tuple[tuple[Job, int], ...]:
        """Every job that is recorded as running, with the process that owns it."""
        rows = await self._database.rows("SELECT * FROM jobs WHERE state = ?", (JobState.RUNNING,))
        return tuple((_job(r), int(r["owner"])) for r in rows)


def _job(found: Row) -> Job:
    result = found["result"]
    return Job(
        id=tag("j", found["id"]),
        kind=found["kind"],
        key=found["key"],
        state=JobState(found["state"]),
        progress=None,  # only the process that runs a job knows how far it is
        result=None if result is None else json.loads(result),
        error=found["error"],
        created_at=found["created_at"],
    )
