"""Revision trees and attempts on disk."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kernelforge_engine import codec
from kernelforge_engine.errors import UnknownId
from kernelforge_engine.exchanges import Attempt
from kernelforge_engine.plans import Source
from kernelforge_engine.records import Label, Node, Outcome, Status, Timing, Verdict
from kernelforge_engine.search.journal import Event, Kind
from kernelforge_engine.store import calls, journal, leases
from kernelforge_engine.store.database import Database, Row
from kernelforge_engine.store.ids import row, tag, unknown
from kernelforge_engine.store.usage import worked

PATH_TO_ROOT = """
WITH RECURSIVE path (id, parent_id) AS (
    SELECT id, parent_id FROM nodes WHERE id = ?
    UNION ALL
    SELECT nodes.id, nodes.parent_id FROM nodes JOIN path ON nodes.id = path.parent_id
)
"""
NODE = """
SELECT n.id, n.variant_id, n.parent_id, n.source_digest, n.artifact_digest, n.label, n.author,
       n.note, n.visits, n.timing, n.verdict, n.created_at
FROM nodes n
"""
ROOT = f"{NODE} WHERE variant_id = ? AND parent_id IS NULL"
RESULTS = """
SELECT variant_id, id, created_at,
       CASE WHEN valid = 1 AND outcome <> 'implausible' THEN timing ->> '$.speedup' END AS speedup
FROM nodes WHERE parent_id IS NOT NULL AND (timing IS NOT NULL OR valid = 0)
UNION ALL SELECT variant_id, id, created_at, NULL FROM attempts
ORDER BY created_at, id
"""
BEST = """
SELECT n.id, n.variant_id, json_extract(n.timing, '$.speedup') AS speedup
FROM sightings s JOIN cards k ON k.id = s.card_id JOIN nodes n ON n.id = (
    SELECT b.id FROM nodes b
    WHERE b.variant_id = s.variant_id AND b.valid = 1 AND b.outcome <> 'implausible'
    ORDER BY b.faster DESC, b.low DESC LIMIT 1
)
WHERE k.capture_id = ? AND s.target
"""


@dataclass(frozen=True, kw_only=True)
class Filing:
    """What a judged proposal brings: where it belongs, its source, its author's words, and how long
    judging it held the device, None where it was not run."""

    variant_id: str
    parent_id: str
    lease_id: str | None
    source: Source
    author: str
    note: str
    verdict: Verdict
    artifact_digest: str | None
    at: float
    device_seconds: float | None = None
    call_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best node of a variant in short."""

    node_id: str
    speedup: float


class Trees:
    """The revision trees of a project."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def root(self, variant_id: str, at: float) -> Node:
        """The root of a variant's tree, eager itself, planted on the first call."""
        number = row("v", variant_id)
        found = await self._database.row(ROOT, (number,))
        if found is None:
            async with self._database.transaction():
                planted = await self._database.execute(
                    """INSERT INTO nodes (variant_id, parent_id, label, author, note, visits,
                                          created_at)
                       VALUES (?, NULL, ?, 'engine', 'eager', 1, ?) ON CONFLICT DO NOTHING""",
                    (number, Label.FALLBACK, at),
                )
                (found,) = await self._database.rows(ROOT, (number,))
                if planted:
                    event = Event(kind=Kind.FILED, node_id=tag("n", found["id"]), visits=1)
                    await journal.write(self._database, number, event)
        return _node(found)

    async def node(self, node_id: str) -> Node:
        """One node.

        Raises:
            UnknownId: there is none.
        """
        found = await self._database.row(f"{NODE} WHERE n.id = ?", (row("n", node_id),))
        if found is None:
            raise unknown("n", node_id)
        return _node(found)

    async def nodes(self, variant_id: str) -> tuple[Node, ...]:
        """Every node of a tree, parents before children."""
        rows = await self._database.rows(
            f"{NODE} WHERE n.variant_id = ? ORDER BY n.id", (row("v", variant_id),)
        )
        return tuple(_node(r) for r in rows)

    async def every_node(self) -> tuple[Node, ...]:
        """Every node of the project that has a source, parents before children."""
        rows = await self._database.rows(f"{NODE} WHERE n.parent_id IS NOT NULL ORDER BY n.id")
        return tuple(_node(r) for r in rows)

    async def every_attempt(self) -> tuple[Attempt, ...]:
        """Every proposal of the project that did not become a node, oldest first."""
        rows = await self._database.rows("SELECT * FROM attempts ORDER BY id")
        return tuple(_attempt(r) for r in rows)

    async def named(self, node_ids: Iterable[str]) -> dict[str, Node]:
        """These nodes by id; those that there are not are left out."""
        numbers = json.dumps([row("n", i) for i in node_ids])
        rows = await self._database.rows(
            f"{NODE} WHERE n.id IN (SELECT value FROM json_each(?))", (numbers,)
        )
        return {node.id: node for node in map(_node, rows)}

    async def line(self, node_id: str) -> tuple[Node, ...]:
        """A node and what it was made from, eager itself first."""
        rows = await self._database.rows(
            f"{PATH_TO_ROOT} {NODE} WHERE n.id IN (SELECT id FROM path) ORDER BY n.id",
            (row("n", node_id),),
        )
        return tuple(_node(r) for r in rows)

    async def best(self, capture_id: str) -> dict[str, Best]:
        """The best node of every target of a capture, by variant: one that was found faster before
        all others, then the one with the highest lower bound."""
        rows = await self._database.rows(BEST, (row("c", capture_id),))
        return {
            tag("v", r["variant_id"]): Best(node_id=tag("n", r["id"]), speedup=r["speedup"])
            for r in rows
        }

    async def results(self) -> dict[str, tuple[float | None, ...]]:
        """What every proposal of every variant came to, in order: its speed-up over eager, or None
        where it failed; those that are yet to be timed are left out."""
        results: dict[str, list[float | None]] = {}
        for found in await self._database.rows(RESULTS):
            results.setdefault(tag("v", found["variant_id"]), []).append(found["speedup"])
        return {variant: tuple(speedups) for variant, speedups in results.items()}

    async def twin(self, variant_id: str, digest: str) -> Node | None:
        """The node of a variant that holds this very source."""
        found = await self._database.row(
            f"{NODE} WHERE n.variant_id = ? AND n.source_digest = ?", (row("v", variant_id), digest)
        )
        return None if found is None else _node(found)

    async def attempts(self, variant_id: str, parent_id: str | None = None) -> tuple[Attempt, ...]:
        """The proposals that did not become nodes, newest first: all, or those below a node."""
        where, value = "variant_id", row("v", variant_id)
        if parent_id is not None:
            where, value = "parent_id", row("n", parent_id)
        rows = await self._database.rows(
            f"SELECT * FROM attempts WHERE {where} = ? ORDER BY id DESC", (value,)
        )
        return tuple(_attempt(r) for r in rows)

    async def source(self, digest: str) -> str | None:
        """The text of a candidate."""
        found = await self._database.row("SELECT text FROM sources WHERE digest = ?", (digest,))
        return None if found is None else str(found["text"])

    async def text(self, digest: str) -> str:
        """The text of a candidate that is known to be there.

        Raises:
            UnknownId: it is not.
        """
        text = await self.source(digest)
        if text is None:
            step = "get_node shows the sources there are"
            raise UnknownId(kind="source", value=digest, step=step)
        return text

    async def counts(self) -> tuple[int, int]:
        """How many nodes with a source, and how many attempts, the project has."""
        (nodes,) = await self._database.rows(
            "SELECT count(*) FROM nodes WHERE parent_id IS NOT NULL"
        )
        (attempts,) = await self._database.rows("SELECT count(*) FROM attempts")
        return int(nodes[0]), int(attempts[0])

    async def file_node(self, filing: Filing) -> Node:
        """Add a valid candidate under its parent and bind its lease to it.

        A source is one node of a variant: of two that were judged at the same time, by whichever
        process, the second finds the node of the first. A lease is one node: of other sources that
        were judged under it at the same time, the first that is filed closes it.

        Raises:
            StaleLease: its lease was used meanwhile.
        """
        async with self._database.transaction():
            twin = await self._database.row(
                "SELECT id FROM nodes WHERE variant_id = ? AND source_digest = ?",
                (row("v", filing.variant_id), filing.source.digest),
            )
            number = int(twin["id"]) if twin else await self._insert_node(filing)
            if filing.lease_id is not None:
                closed = await leases.end(self._database, filing.lease_id, filing.at, number)
                if not closed and twin is None:
                    raise leases.used(filing.lease_id, filing.variant_id)
            await worked(self._database, "judge", filing.device_seconds, node=number)
        return await self.node(tag("n", number))

    async def _insert_node(self, filing: Filing) -> int:
        variant = row("v", filing.variant_id)
        await self._keep_source(filing.source)
        number = await self._database.insert(
            """INSERT INTO nodes (variant_id, parent_id, source_digest, artifact_digest, label,
                                  author, note, verdict, created_at)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                variant,
                row("n", filing.parent_id),
                filing.source.digest,
                filing.artifact_digest,
                Label.GENERATED,
                filing.author,
                filing.note,
                codec.dumps(filing.verdict),
                filing.at,
            ),
        )
        filed = Event(kind=Kind.FILED, node_id=tag("n", number), parent_id=filing.parent_id)
        await journal.write(self._database, variant, filed)
        return number

    async def file_attempt(self, filing: Filing) -> tuple[str, int | None]:
        """Keep a proposal that is not valid; its id, and how often its lease still lets it be
        mended. The lease ends with its last repair. No count of the search changes."""
        lease = None if filing.lease_id is None else row("l", filing.lease_id)
        async with self._database.transaction():
            await self._keep_source(filing.source)
            number = await self._database.insert(
                """INSERT INTO attempts (variant_id, parent_id, lease_id, source_digest, author,
                                         note, verdict, created_at)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
                (
                    row("v", filing.variant_id),
                    row("n", filing.parent_id),
                    lease,
                    filing.source.digest,
                    filing.author,
                    filing.note,
                    codec.dumps(filing.verdict),
                    filing.at,
                ),
            )
            await calls.note(self._database, filing.call_key, "attempt", number)
            await worked(self._database, "judge", filing.device_seconds, attempt=number)
            left = None if lease is None else await leases.repairs_left(self._database, lease)
            if filing.lease_id is not None and left == 0:
                await leases.end(self._database, filing.lease_id, filing.at)
        return tag("a", number), left

    async def attempt_of(
        self, call_key: str, variant_id: str, lease_id: str | None, digest: str
    ) -> tuple[Attempt, int | None] | None:
        """What `file_attempt` said of a source when the same call, by its client's key, was made
        before."""
        number = await calls.came_to(self._database, call_key, "attempt")
        found = await self._database.row(
            """SELECT * FROM attempts
               WHERE id = ? AND variant_id = ? AND lease_id IS ? AND source_digest = ?""",
            (
                number,
                row("v", variant_id),
                None if lease_id is None else row("l", lease_id),
                digest,
            ),
        )
        if found is None:
            return None
        lease = found["lease_id"]
        left = None if lease is None else await leases.repairs_left(self._database, lease)
        return _attempt(found), left

    async def _keep_source(self, source: Source) -> None:
        await self._database.execute(
            "INSERT INTO sources (digest, backend, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (source.digest, source.backend, source.text),
        )

    async def file_timing(
        self, node_id: str, timing: Timing, device_seconds: float | None = None
    ) -> Node:
        """Record a node's timing; its first one adds a visit to it and to every ancestor."""
        number = row("n", node_id)
        async with self._database.transaction():
            before = await self.node(node_id)
            await self._database.execute(
                "UPDATE nodes SET timing = ? WHERE id = ?", (codec.dumps(timing), number)
            )
            if before.timing is None:
                await self._database.execute(
                    f"""{PATH_TO_ROOT}
                    UPDATE nodes SET visits = visits + 1 WHERE id IN (SELECT id FROM path)""",
                    (number,),
                )
            await worked(self._database, "time", device_seconds, node=number)
            return await self._told(node_id, visits=int(before.timing is None))

    async def _told(self, node_id: str, visits: int = 0) -> Node:
        """A node whose timing or verdict has changed; the journal is told what to believe of it."""
        node = await self.node(node_id)
        event = Event(kind=Kind.TIMED, node_id=node_id, visits=visits, latency_us=_believed(node))
        await journal.write(self._database, row("v", node.variant_id), event)
        return node

    async def file_verdict(
        self, node_id: str, verdict: Verdict, device_seconds: float | None = None
    ) -> Node:
        """Record what a node was found to be when it was looked at again; where it is not valid any
        more, what its timing said goes with it."""
        kept = "timing" if verdict.status == Status.VALID else "NULL"
        async with self._database.transaction():
            await self._database.execute(
                f"UPDATE nodes SET verdict = ?, timing = {kept} WHERE id = ?",
                (codec.dumps(verdict), row("n", node_id)),
            )
            await worked(self._database, "time", device_seconds, node=row("n", node_id))
            return await self._told(node_id)


def _believed(node: Node) -> float | None:
    """The latency that the search may believe; outlines.SEEN says the same in SQL."""
    if node.timing is None or node.timing.outcome == Outcome.IMPLAUSIBLE or not is_valid(node):
        return None
    return node.timing.candidate_us


def is_valid(node: Node) -> bool:
    """Whether a node has a source, and no benchmark found its output wrong."""
    return node.verdict is not None and node.verdict.status == Status.VALID


def _node(found: Row) -> Node:
    parent = found["parent_id"]
    return Node(
        id=tag("n", found["id"]),
        variant_id=tag("v", found["variant_id"]),
        parent_id=None if parent is None else tag("n", parent),
        source_digest=found["source_digest"],
        artifact_digest=found["artifact_digest"],
        label=Label(found["label"]),
        author=found["author"],
        note=found["note"],
        visits=found["visits"],
        timing=_optional(Timing, found["timing"]),
        verdict=_optional(Verdict, found["verdict"]),
        created_at=found["created_at"],
    )


def _optional(kind: Any, text: str | None) -> Any:
    return None if text is None else codec.loads(kind, text)


def _attempt(found: Row) -> Attempt:
    return Attempt(
        id=tag("a", found["id"]),
        variant_id=tag("v", found["variant_id"]),
        parent_id=tag("n", found["parent_id"]),
        author=found["author"],
        note=found["note"],
        source_digest=found["source_digest"],
        verdict=codec.loads(Verdict, found["verdict"]),
        created_at=found["created_at"],
    )
