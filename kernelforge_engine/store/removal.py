"""Taking a capture out of the project: its records, then the blobs that nothing names any more."""

from collections.abc import Sequence
from pathlib import Path

import anyio

from kernelforge_engine.errors import CaptureHoldsWork, StoreUnavailable
from kernelforge_engine.exchanges import Collected, Removed
from kernelforge_engine.store.blobs import collect, sizes
from kernelforge_engine.store.captures import Captures
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.ids import row, tag

ONLY_THERE = """
SELECT DISTINCT s.variant_id FROM sightings s JOIN cards c ON c.id = s.card_id
WHERE c.capture_id = ? AND NOT EXISTS (
    SELECT 1 FROM sightings o JOIN cards k ON k.id = o.card_id
    WHERE o.variant_id = s.variant_id AND k.capture_id != c.capture_id
)
"""
NAMED = """
SELECT name.value AS name FROM sightings s, json_each(s.examples) AS example,
    json_each(example.value) AS name
UNION
SELECT name.value FROM sightings s, json_each(s.details, '$.family.members') AS member,
    json_each(member.value, '$.examples') AS example, json_each(example.value) AS name
"""
MENTIONED = 8


class Removal:
    """Removes captures and collects blobs."""

    def __init__(self, database: Database, blobs: Path) -> None:
        self._database, self._blobs = database, blobs

    async def capture(self, capture_id: str, *, force: bool) -> Removed:
        """Remove a capture with its cards and with the variants that no other capture saw.

        Raises:
            UnknownId: there is none.
            CaptureHoldsWork: nodes would go with it, and `force` does not say that they may.
        """
        number = row("c", (await Captures(self._database).get(capture_id)).id)
        async with self._database.transaction():
            found = await self._database.rows(f"{ONLY_THERE} ORDER BY s.variant_id", (number,))
            variants = [int(r["variant_id"]) for r in found]
            nodes = await self._nodes(variants)
            if nodes and not force:
                raise CaptureHoldsWork(capture=capture_id, nodes=_listed(nodes))
            await self._remove(number, variants)
        return Removed(capture_id=capture_id, variants=len(variants), nodes=len(nodes))

    async def _nodes(self, variants: Sequence[int]) -> list[str]:
        """The nodes of those variants that hold a source, each with its variant."""
        rows = await self._database.rows(
            f"""SELECT id, variant_id FROM nodes
            WHERE parent_id IS NOT NULL AND variant_id IN {_set(variants)} ORDER BY id"""
        )
        return [f"{tag('n', r['id'])} of {tag('v', r['variant_id'])}" for r in rows]

    async def _remove(self, capture: int, variants: Sequence[int]) -> None:
        gone, cards = _set(variants), "(SELECT id FROM cards WHERE capture_id = ?)"
        nodes = f"(SELECT id FROM nodes WHERE variant_id IN {gone})"
        await self._database.execute(f"DELETE FROM profiles WHERE node_id IN {nodes}")
        for table in ("attempts", "journal", "leases", "nodes"):
            await self._database.execute(f"DELETE FROM {table} WHERE variant_id IN {gone}")
        await self._database.execute(f"DELETE FROM sightings WHERE card_id IN {cards}", (capture,))
        await self._database.execute(f"DELETE FROM variants WHERE id IN {gone}")
        await self._database.execute("DELETE FROM cards WHERE capture_id = ?", (capture,))
        await self._database.execute("DELETE FROM captures WHERE id = ?", (capture,))
        await self._database.execute(
            """DELETE FROM sources WHERE digest NOT IN (
                SELECT source_digest FROM nodes WHERE source_digest IS NOT NULL
                UNION SELECT source_digest FROM attempts)"""
        )

    async def collect(self, at: float) -> Collected:
        """Remove the blobs that no capture names and that none can be about to name.

        Raises:
            StoreUnavailable: the folder cannot be written.
        """
        named = {r["name"] for r in await self._database.rows(NAMED)}
        try:
            return await anyio.to_thread.run_sync(collect, self._blobs, named, at)
        except OSError as error:
            why = error.strerror or str(error)
            raise StoreUnavailable(path=self._blobs.parent, why=why) from error

    async def stored_bytes(self) -> int:
        """What the blobs of the project take."""
        return sum((await anyio.to_thread.run_sync(sizes, self._blobs)).values())


def _set(numbers: Sequence[int]) -> str:
    """Row numbers as an SQL list: there may be more than SQLite takes parameters."""
    return f"({', '.join(str(int(n)) for n in numbers)})"


def _listed(nodes: Sequence[str]) -> str:
    more = len(nodes) - MENTIONED
    return ", ".join(nodes[:MENTIONED]) + (f" and {more} more" if more > 0 else "")
