"""Captures, cards and variants on disk."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import fields, replace

from kernelforge_engine import codec
from kernelforge_engine.calls import Call
from kernelforge_engine.pool.orders import Sighting
from kernelforge_engine.records import Capture, Card, Details, Family, Variant
from kernelforge_engine.sizes import skeleton
from kernelforge_engine.store.database import Database, Row
from kernelforge_engine.store.ids import row, tag, unknown

CARD = """
SELECT k.*, json_extract(c.record, '$.wall_us') AS wall_us
FROM cards k JOIN captures c ON c.id = k.capture_id
"""
VARIANT = """
SELECT s.*, v.call AS call FROM sightings s JOIN variants v ON v.id = s.variant_id
"""


MOST_HELD = 4  # captures whose cards are kept in memory
DETAILS = tuple(f.name for f in fields(Details))


def variant_digest(call: Call, family: Family | None, device_name: str) -> str:
    """What makes two variants the same across captures: the operator, its key or, for a shape
    family, how its sizes hang together, and the device."""
    key = list(call.words) if family is None else [skeleton(call), [list(f) for f in family.fits]]
    return codec.sha256(codec.dumps([call.name, key, device_name]))


class Captures:
    """The captures of a project."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cards: OrderedDict[str, tuple[Card, ...]] = OrderedDict()

    async def add(self, capture: Capture, sightings: Sequence[Sighting]) -> Capture:
        """File a capture with everything it saw, in one transaction; it comes back with its id."""
        async with self._database.transaction():
            number = await self._database.insert(
                "INSERT INTO captures (record, created_at) VALUES (?, ?)",
                (codec.dumps(capture), capture.created_at),
            )
            cards: dict[str, int] = {}
            for sighting in sightings:
                operator = sighting.call.name
                if operator not in cards:
                    cards[operator] = await self._database.insert(
                        "INSERT INTO cards (capture_id, operator) VALUES (?, ?)", (number, operator)
                    )
                await self._sight(capture, cards[operator], sighting)
        return replace(capture, id=tag("c", number))

    async def _sight(self, capture: Capture, card: int, sighting: Sighting) -> None:
        digest = variant_digest(sighting.call, sighting.family, capture.device_name)
        await self._database.execute(
            "INSERT INTO variants (digest, call) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING",
            (digest, codec.dumps(sighting.call)),
        )
        (found,) = await self._database.rows("SELECT id FROM variants WHERE digest = ?", (digest,))
        await self._database.insert(
            """INSERT INTO sightings (variant_id, card_id, calls, eager_us, share, floor_us,
                                      module, target, reason, examples, details)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                found["id"],
                card,
                sighting.calls,
                sighting.eager_us,
                sighting.share,
                sighting.floor_us,
                sighting.module,
                sighting.target,
                sighting.reason,
                codec.dumps([list(e) for e in sighting.examples]),
                codec.dumps(Details(**{name: getattr(sighting, name) for name in DETAILS})),
            ),
        )

    async def all(self) -> tuple[Capture, ...]:
        """Every capture, newest first."""
        rows = await self._database.rows("SELECT * FROM captures ORDER BY id DESC")
        return tuple(_capture(r) for r in rows)

    async def get(self, capture_id: str | None) -> Capture:
        """A capture, or the newest one.

        Raises:
            UnknownId: there is none.
        """
        if capture_id is None:
            found = await self._database.row("SELECT * FROM captures ORDER BY id DESC LIMIT 1")
        else:
            found = await self._database.row(
                "SELECT * FROM captures WHERE id = ?", (row("c", capture_id),)
            )
        if found is None:
            raise unknown("c", capture_id or "latest")
        return _capture(found)

    async def cards(self, capture_id: str) -> tuple[Card, ...]:
        """The cards of a capture, by share of the captured time. A capture that is filed never
        changes and its id is never given again, so the cards of the latest few are held."""
        if capture_id not in self._cards:
            self._cards[capture_id] = await self._read_cards(capture_id)
            while len(self._cards) > MOST_HELD:
                self._cards.popitem(last=False)
        self._cards.move_to_end(capture_id)
        return self._cards[capture_id]

    async def _read_cards(self, capture_id: str) -> tuple[Card, ...]:
        rows = await self._database.rows(f"{CARD} WHERE k.capture_id = ?", (row("c", capture_id),))
        cards = [await self._card(r) for r in rows]
        return tuple(sorted(cards, key=lambda c: -c.share))

    async def card(self, card_id: str) -> Card:
        """One card.

        Raises:
            UnknownId: there is none.
        """
        found = await self._database.row(f"{CARD} WHERE k.id = ?", (row("k", card_id),))
        if found is None:
            raise unknown("k", card_id)
        return await self._card(found)

    async def _card(self, found: Row) -> Card:
        rows = await self._database.rows(
            f"{VARIANT} WHERE s.card_id = ? ORDER BY s.share DESC, s.id", (found["id"],)
        )
        variants = tuple(sorted(map(_variant, rows), key=lambda v: v.family is not None))
        exact = [v for v in variants if v.family is None]
        total = sum(v.calls * v.eager_us for v in exact)
        floor = sum(v.calls * v.floor_us for v in exact)
        return Card(
            id=tag("k", found["id"]),
            capture_id=tag("c", found["capture_id"]),
            operator=found["operator"],
            calls=sum(v.calls for v in exact),
            total_us=total,
            share=sum(v.share for v in exact),
            headroom=total / floor if floor > 0 else 1.0,
            variants=variants,
            wall_share=total / found["wall_us"] if found["wall_us"] else None,
        )

    async def variant(self, variant_id: str) -> Variant:
        """A variant as the newest capture saw it that kept examples of it, else as the newest did.

        Raises:
            UnknownId: there is none.
        """
        found = await self._database.row(
            f"""{VARIANT} WHERE s.variant_id = ?
            ORDER BY json_array_length(s.examples) > 0 DESC, s.id DESC LIMIT 1""",
            (row("v", variant_id),),
        )
        if found is None:
            raise unknown("v", variant_id)
        return _variant(found)

    async def count_variants(self) -> int:
        """How many variants the project knows."""
        (found,) = await self._database.rows("SELECT count(*) FROM variants")
        return int(found[0])


def _capture(found: Row) -> Capture:
    return replace(codec.loads(Capture, found["record"]), id=tag("c", found["id"]))


def _variant(found: Row) -> Variant:
    details: Details = codec.loads(Details, found["details"])
    call = codec.loads(Call, found["call"])
    if details.family is not None:  # another capture may have had another dearest member
        call = details.family.dearest.call
    return Variant(
        id=tag("v", found["variant_id"]),
        card_id=tag("k", found["card_id"]),
        call=call,
        calls=found["calls"],
        eager_us=found["eager_us"],
        share=found["share"],
        floor_us=found["floor_us"],
        module=found["module"],
        target=bool(found["target"]),
        reason=found["reason"],
        examples=codec.loads(tuple[tuple[str, ...], ...], found["examples"]),
        **vars(details),
    )
