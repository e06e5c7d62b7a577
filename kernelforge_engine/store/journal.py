"""The journal of the searches on disk; every line is written in the transaction of what it tells
of."""

from kernelforge_engine.search.journal import Event, Kind
from kernelforge_engine.store.database import Database, Row
from kernelforge_engine.store.ids import row, tag


async def write(database: Database, variant: int, event: Event) -> None:
    """Add a line, inside a transaction."""
    await database.insert(
        """INSERT INTO journal (variant_id, kind, node_id, parent_id, lease_id, policy, visits,
                                latency_us, at, expires_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            variant,
            event.kind,
            _number("n", event.node_id),
            _number("n", event.parent_id),
            _number("l", event.lease_id),
            event.policy,
            event.visits,
            event.latency_us,
            event.at,
            event.expires_at,
        ),
    )


async def read(database: Database, variant: int) -> tuple[Event, ...]:
    """Every line of a variant, oldest first."""
    rows = await database.rows("SELECT * FROM journal WHERE variant_id = ? ORDER BY id", (variant,))
    return tuple(_event(found) for found in rows)


def _event(found: Row) -> Event:
    return Event(
        kind=Kind(found["kind"]),
        node_id=_tag("n", found["node_id"]),
        parent_id=_tag("n", found["parent_id"]),
        lease_id=_tag("l", found["lease_id"]),
        policy=found["policy"],
        visits=found["visits"],
        latency_us=found["latency_us"],
        at=found["at"],
        expires_at=found["expires_at"],
    )


def _number(letter: str, text: str | None) -> int | None:
    return None if text is None else row(letter, text)


def _tag(letter: str, number: int | None) -> str | None:
    return None if number is None else tag(letter, number)
