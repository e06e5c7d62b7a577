"""Replays on disk, each row as soon as it is known."""

from dataclasses import dataclass

from kernelforge_engine import codec
from kernelforge_engine.replays import Here, Replayed
from kernelforge_engine.store.database import Database


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A replay that was begun, and what is known of it."""

    id: int
    started_at: float
    rows: dict[str, Replayed]


class Replays:
    """The replays of a project."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def unfinished(self, here: Here, *, attempts: bool) -> Begun | None:
        """The latest replay that was begun on such a machine, if it was not finished."""
        found = await self._database.row(
            """SELECT id, started_at, finished_at FROM replays WHERE machine = ? AND attempts = ?
               ORDER BY id DESC LIMIT 1""",
            (codec.dumps(here), attempts),
        )
        if found is None or found["finished_at"] is not None:
            return None
        rows = await self._database.rows(
            "SELECT subject, record FROM replayed WHERE replay_id = ?", (found["id"],)
        )
        known = {r["subject"]: codec.loads(Replayed, r["record"]) for r in rows}
        return Begun(id=found["id"], started_at=found["started_at"], rows=known)

    async def begin(self, here: Here, *, attempts: bool, at: float) -> Begun:
        """Begin a replay."""
        async with self._database.transaction():
            number = await self._database.insert(
                "INSERT INTO replays (machine, attempts, started_at) VALUES (?, ?, ?)",
                (codec.dumps(here), attempts, at),
            )
        return Begun(id=number, started_at=at, rows={})

    async def file(self, replay: int, row: Replayed) -> None:
        """Keep what became of one node or attempt."""
        async with self._database.transaction():
            await self._database.execute(
                "INSERT OR REPLACE INTO replayed (replay_id, subject, record) VALUES (?, ?, ?)",
                (replay, row.id, codec.dumps(row)),
            )

    async def finish(self, replay: int, at: float) -> None:
        """Say that nothing is left to do."""
        async with self._database.transaction():
            await self._database.execute(
                "UPDATE replays SET finished_at = ? WHERE id = ?", (at, replay)
            )
