"""How a budget of evaluations is spent on the targets of a capture, from what is on disk."""

from collections.abc import Iterator
from dataclasses import dataclass

from kernelforge_engine.records import Card, Variant
from kernelforge_engine.search.budget import Allotment, Budget, Stake, plan
from kernelforge_engine.store.stores import Stores


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A target of a plan: its card, its variant, and what it is given."""

    card: Card
    variant: Variant
    allotment: Allotment


class Planner:
    """Plans the budgets of one project."""

    def __init__(self, stores: Stores) -> None:
        self._captures, self._trees = stores.captures, stores.trees

    async def plan(self, capture_id: str | None, budget: Budget) -> tuple[Planned, ...]:
        """What every target of a capture is given, most first, from what is known by now; of the
        newest capture where none is named. Regions overlap the operators inside them and stand
        beside them."""
        capture = await self._captures.get(capture_id)
        found: dict[str, tuple[Card, Variant]] = {}
        for card in await self._captures.cards(capture.id):
            found |= {variant.id: (card, variant) for variant in targets(card)}
        results = await self._trees.results()
        stakes = [stake(card, v, results.get(v.id, ())) for card, v in found.values()]
        return tuple(_planned(found[a.stake.id], a) for a in plan(stakes, budget))


def targets(card: Card) -> Iterator[Variant]:
    """What kernels of a card are written for: its families, and the variants that are in none."""
    families = [v for v in card.variants if v.target and v.family is not None]
    covered = {m.call.words for v in families if v.family for m in v.family.members}
    yield from families
    for variant in card.variants:
        if variant.target and variant.family is None and variant.call.words not in covered:
            yield variant


def stake(card: Card, variant: Variant, results: tuple[float | None, ...] = ()) -> Stake:
    """A target as far as its budget is concerned; its share is of the model's own time where that
    was measured, else of the time of all operators."""
    return Stake(
        id=variant.id,
        share=model_share(card, variant.share),
        headroom=variant.headroom,
        results=results,
    )


def model_share(card: Card, share: float) -> float:
    """A share of operator time as one of the model's own time, where that was measured."""
    scale = card.wall_share / card.share if card.wall_share is not None and card.share else 1.0
    return min(1.0, share * scale)


def _planned(target: tuple[Card, Variant], allotment: Allotment) -> Planned:
    card, variant = target
    return Planned(card=card, variant=variant, allotment=allotment)
