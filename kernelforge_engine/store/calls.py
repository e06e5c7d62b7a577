"""What the calls came to that their clients gave a key: one that is made again, because its answer
was lost with whoever asked, comes to the same."""

from typing import Literal

from kernelforge_engine.store.database import Database

Noun = Literal["job", "lease", "attempt"]


async def came_to(database: Database, key: str | None, noun: Noun) -> int | None:
    """The row of what the call with a key came to, None where that is not on record."""
    found = await database.row(f"SELECT {noun}_id AS number FROM calls WHERE key = ?", (key,))
    return None if found is None else found["number"]


async def note(database: Database, key: str | None, noun: Noun, number: int) -> None:
    """Record what a call came to, inside a transaction; one without a key is not told apart."""
    if key is not None:
        await database.execute(
            f"""INSERT INTO calls (key, {noun}_id) VALUES (?, ?)
                ON CONFLICT DO UPDATE SET {noun}_id = excluded.{noun}_id""",
            (key, number),
        )
