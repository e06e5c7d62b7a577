"""One SQLite file in WAL mode: opening, numbered migrations, and transactions."""

import sqlite3
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import aiosqlite
import anyio

from kernelforge_engine.errors import QuotaReached, SchemaTooNew, StoreUnavailable

MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_SECONDS = 15.0
PAGE_BYTES = 4096
NAME = "forge.db"

Row = sqlite3.Row
Parameters = Sequence[Any] | Mapping[str, Any]


def migrations() -> list[tuple[int, str]]:
    """The numbered migrations in order, as (number, SQL)."""
    files = sorted(MIGRATIONS.glob("[0-9]*.sql"))
    return [(int(file.name.split("_")[0]), file.read_text(encoding="utf-8")) for file in files]


class Database:
    """The connection of one process; every write goes through `transaction`."""

    def __init__(
        self, folder: Path, connection: aiosqlite.Connection, quota_bytes: int | None
    ) -> None:
        self._folder = folder
        self._connection = connection
        self._quota = quota_bytes
        self._writing = anyio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(cls, folder: Path, quota_bytes: int | None) -> AsyncIterator["Database"]:
        """Open `folder`/forge.db, made and migrated as needed.

        Raises:
            StoreUnavailable: the folder cannot be written, or has reached its quota.
            SchemaTooNew: a newer version of the product wrote it.
        """
        with _refusals(folder, None):
            (folder / "blobs").mkdir(parents=True, exist_ok=True)
            (folder / "artifacts").mkdir(exist_ok=True)
            connection = await aiosqlite.connect(
                folder / NAME, timeout=BUSY_SECONDS, isolation_level=None
            )
        try:
            connection.row_factory = sqlite3.Row
            database = cls(folder, connection, quota_bytes)
            with _refusals(folder, quota_bytes):
                await database._prepare()
            yield database
        finally:
            await connection.close()

    async def _prepare(self) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            await self._connection.execute(f"PRAGMA {pragma}")
        if self._quota is not None:
            await self._share(self._quota)
        async with self.transaction():
            await self._migrate()

    async def _migrate(self) -> None:
        (row,) = await self.rows("PRAGMA user_version")
        found, known = int(row[0]), migrations()
        if found > known[-1][0]:
            raise SchemaTooNew(path=self._folder, found=found, known=known[-1][0])
        for number, script in known:
            if number > found:
                for statement in _statements(script):
                    await self._connection.execute(statement)
                await self._connection.execute(f"PRAGMA user_version = {number}")

    async def room(self, need: str) -> int | None:
        """How many bytes the project folder may still grow by; None without a quota.

        Raises:
            QuotaReached: none are left for `need`.
        """
        if self._quota is None:
            return None
        left = await self._share(self._quota)
        if left <= 0:
            raise QuotaReached(path=self._folder, quota=self._quota, need=need)
        return left

    async def _share(self, quota: int) -> int:
        """Give the database what the rest of the folder leaves of the quota; the bytes left."""
        sizes = await anyio.to_thread.run_sync(_sizes, self._folder)
        others = sum(n for name, n in sizes.items() if not name.startswith(NAME))
        pages = max(1, (quota - others) // PAGE_BYTES)
        await self._connection.execute(f"PRAGMA max_page_count = {pages}")
        return quota - sum(sizes.values())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """All the writes inside, or none of them.

        Raises:
            StoreUnavailable: the disk or the quota is full, the file is read-only, or it stayed
                locked.
        """
        async with self._writing:
            with _refusals(self._folder, self._quota):
                try:
                    # SQLite goes on with a statement whose caller was cancelled, so it is awaited.
                    with anyio.CancelScope(shield=True):
                        await self._connection.execute("BEGIN IMMEDIATE")
                    yield
                    with anyio.CancelScope(shield=True):
                        await self._connection.execute("COMMIT")
                except BaseException:
                    with anyio.CancelScope(shield=True):
                        await self._connection.rollback()  # after what still runs; may find nothing
                    raise

    async def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row of a query."""
        with _refusals(self._folder, self._quota):
            return list(await self._connection.execute_fetchall(sql, parameters))

    async def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row of a query, or None."""
        found = await self.rows(sql, parameters)
        return found[0] if found else None

    async def insert(self, sql: str, parameters: Sequence[Any]) -> int:
        """Run one INSERT inside a transaction; the id of the new row."""
        cursor = await self._connection.execute(sql, parameters)
        return int(cursor.lastrowid or 0)

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement inside a transaction; how many rows it changed."""
        return (await self._connection.execute(sql, parameters)).rowcount


def _statements(script: str) -> list[str]:
    statements: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def _sizes(folder: Path) -> dict[str, int]:
    """The size of every file below a folder; another process may remove some meanwhile."""
    sizes = {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode):
                sizes[str(path.relative_to(folder))] = found.st_size
    return sizes


class _refusals:  # noqa: N801  reads as a statement: with _refusals(folder, quota)
    """Turn what SQLite and the file system say about a full or read-only disk into our words."""

    def __init__(self, folder: Path, quota_bytes: int | None) -> None:
        self._folder, self._quota = folder, quota_bytes

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_FULL and self._quota is not None:
            need = "another record"
            raise QuotaReached(path=self._folder, quota=self._quota, need=need) from error
        if isinstance(error, OSError | sqlite3.DatabaseError):
            why = getattr(error, "strerror", None) or str(error)
            raise StoreUnavailable(path=self._folder, why=why) from error
