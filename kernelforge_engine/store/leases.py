"""Leases on disk: a parent chosen and held for one proposal, in one step."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelforge_engine.errors import StaleLease
from kernelforge_engine.records import Lease
from kernelforge_engine.search.journal import Event, Kind
from kernelforge_engine.search.tree import Tree, TreeNode
from kernelforge_engine.store import calls, journal
from kernelforge_engine.store.database import Database, Row
from kernelforge_engine.store.ids import row, tag, unknown
from kernelforge_engine.store.outlines import Outlines


@dataclass(frozen=True, kw_only=True)
class Request:
    """A lease that somebody wants, and when; `call_key` is the client's own key for the call."""

    variant_id: str
    holder: str
    policy: str
    at: float
    expires_at: float
    max_repairs: int
    call_key: str | None = None


class Leases:
    """The leases of a project."""

    def __init__(self, database: Database) -> None:
        self._database, self._outlines = database, Outlines(database)
        self.tree = self._outlines.tree

    async def take(
        self, wanted: Request, eager_us: float, choose: Callable[[Tree], TreeNode]
    ) -> tuple[Lease, Tree]:
        """Choose a parent and lease it; the lease, and the tree that was chosen from. Nobody
        chooses between the two, in whichever process, so that every choice sees the leases before
        it. A call that was made before is given the lease of then, while that is open."""
        async with self._database.transaction():
            tree = await self.tree(wanted.variant_id, eager_us, wanted.at)
            given = await self._of_call(wanted)
            return given or await self._given(wanted, choose(tree).id, eager_us), tree

    async def _of_call(self, wanted: Request) -> Lease | None:
        number = await calls.came_to(self._database, wanted.call_key, "lease")
        found = await self._database.row(
            """SELECT * FROM leases
               WHERE id = ? AND variant_id = ? AND holder = ? AND policy = ? AND max_repairs = ?
                 AND closed_at IS NULL AND expires_at > ?""",
            (
                number,
                row("v", wanted.variant_id),
                wanted.holder,
                wanted.policy,
                wanted.max_repairs,
                wanted.at,
            ),
        )
        if found is None:
            return None
        left = await repairs_left(self._database, found["id"])
        return replace(_lease(found), repairs_left=left)

    async def _given(self, wanted: Request, parent_id: str, eager_us: float) -> Lease:
        variant = row("v", wanted.variant_id)
        number = await self._database.insert(
            """INSERT INTO leases (variant_id, parent_id, holder, policy, expires_at, max_repairs)
               VALUES (?, ?, ?, ?, ?, ?)""",
            (
                variant,
                row("n", parent_id),
                wanted.holder,
                wanted.policy,
                wanted.expires_at,
                wanted.max_repairs,
            ),
        )
        given = Event(
            kind=Kind.LEASED,
            node_id=parent_id,
            lease_id=tag("l", number),
            policy=wanted.policy,
            latency_us=eager_us,
            at=wanted.at,
            expires_at=wanted.expires_at,
        )
        await journal.write(self._database, variant, given)
        await calls.note(self._database, wanted.call_key, "lease", number)
        return Lease(
            id=tag("l", number),
            variant_id=wanted.variant_id,
            parent_id=parent_id,
            holder=wanted.holder,
            policy=wanted.policy,
            expires_at=wanted.expires_at,
            repairs_left=wanted.max_repairs,
        )

    async def journal(self, variant_id: str) -> tuple[Event, ...]:
        """What happened to a tree, oldest first."""
        return await journal.read(self._database, row("v", variant_id))

    async def recorded(
        self, variant_id: str, eager_us: float, at: float
    ) -> tuple[tuple[Event, ...], Tree]:
        """What happened to a tree and what it is, of one moment."""
        async with self._database.transaction():
            return await self.journal(variant_id), await self.tree(variant_id, eager_us, at)

    async def open_lease(self, lease_id: str, at: float) -> Lease:
        """A lease that may still be submitted under.

        Raises:
            UnknownId: there is none.
            StaleLease: it has expired or was used.
        """
        number = row("l", lease_id)
        found = await self._database.row("SELECT * FROM leases WHERE id = ?", (number,))
        if found is None:
            raise unknown("l", lease_id)
        variant = tag("v", found["variant_id"])
        left = await repairs_left(self._database, number)
        if found["closed_at"] is not None:
            spent = found["node_id"] is None and left == 0
            raise _stale(lease_id, variant, "used up its repairs" if spent else "been used")
        if found["expires_at"] <= at:
            raise _stale(lease_id, variant, "expired")
        return replace(_lease(found), repairs_left=left)

    async def count_open(self, at: float) -> int:
        """How many leases are open in the whole project."""
        (found,) = await self._database.rows(
            """SELECT count(*) FROM leases
               WHERE closed_at IS NULL AND expires_at > ?""",
            (at,),
        )
        return int(found[0])

    async def close(self, lease_id: str, node_id: str, at: float) -> None:
        """Close a lease with a node that was there before; its virtual visit ends."""
        async with self._database.transaction():
            await end(self._database, lease_id, at, row("n", node_id))

    async def is_closed_with(self, lease_id: str, node_id: str) -> bool:
        """Whether it was this node that a lease was closed with."""
        found = await self._database.row(
            "SELECT 1 FROM leases WHERE id = ? AND node_id = ?",
            (row("l", lease_id), row("n", node_id)),
        )
        return found is not None

    async def rivals(self, lease: Lease, at: float) -> tuple[Lease, ...]:
        """The other leases of the same parent that are open."""
        found = await self._database.rows(
            """SELECT * FROM leases
               WHERE variant_id = ? AND parent_id = ? AND id <> ?
                 AND closed_at IS NULL AND expires_at > ?""",
            (row("v", lease.variant_id), row("n", lease.parent_id), row("l", lease.id), at),
        )
        return tuple(map(_lease, found))


async def end(database: Database, lease_id: str, at: float, node: int | None = None) -> bool:
    """End a lease, inside a transaction; whether it was open."""
    number = row("l", lease_id)
    closed = await database.execute(
        "UPDATE leases SET node_id = ?, closed_at = ? WHERE id = ? AND closed_at IS NULL",
        (node, at, number),
    )
    if closed:
        (found,) = await database.rows("SELECT variant_id FROM leases WHERE id = ?", (number,))
        event = Event(kind=Kind.ENDED, lease_id=lease_id)
        await journal.write(database, int(found["variant_id"]), event)
    return bool(closed)


async def repairs_left(database: Database, lease: int) -> int:
    """How often a failed proposal under a lease may still be mended."""
    (found,) = await database.rows(
        """SELECT max_repairs, (SELECT count(*) FROM attempts WHERE lease_id = leases.id) AS failed
           FROM leases WHERE id = ?""",
        (lease,),
    )
    return max(0, int(found["max_repairs"]) - max(0, int(found["failed"]) - 1))


def used(lease_id: str, variant_id: str) -> StaleLease:
    """The error for a lease under which a node was filed."""
    return _stale(lease_id, variant_id, "been used")


def _stale(lease_id: str, variant_id: str, why: str) -> StaleLease:
    return StaleLease(lease=lease_id, why=why, variant=variant_id)


def _lease(found: Row) -> Lease:
    return Lease(
        id=tag("l", found["id"]),
        variant_id=tag("v", found["variant_id"]),
        parent_id=tag("n", found["parent_id"]),
        holder=found["holder"],
        policy=found["policy"],
        expires_at=found["expires_at"],
        repairs_left=found["max_repairs"],
    )
