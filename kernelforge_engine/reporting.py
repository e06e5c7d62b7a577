"""What a project came to, gathered from its database alone for whoever reports it."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from kernelforge_engine import __version__
from kernelforge_engine.accounts import Accounts
from kernelforge_engine.exchanges import Attempt
from kernelforge_engine.measurements import Exported, Measured
from kernelforge_engine.optimize import AUTHOR, best_node
from kernelforge_engine.planning import Planner, stake
from kernelforge_engine.records import Capture, Card, Node, Outcome, Variant
from kernelforge_engine.search.budget import Allotment, Budget, Stake
from kernelforge_engine.store.casts import Casts
from kernelforge_engine.store.stores import Stores
from kernelforge_engine.usage import Spending


@dataclass(frozen=True, kw_only=True)
class TargetReport:
    """A target with its revision tree.

    Attributes:
        why_none: why no more proposals should be spent on it, with the arithmetic, or None.
        nodes: eager itself, where anything was tried, and its valid candidates.
        best: the node that a cast would take, where one was timed.
        source: the text of the best node.
    """

    variant: Variant
    stake: Stake
    why_none: str | None
    nodes: tuple[Node, ...]
    attempts: tuple[Attempt, ...]
    best: Node | None
    source: str | None

    @property
    def candidates(self) -> int:
        """How many were proposed."""
        return sum(node.parent_id is not None for node in self.nodes) + len(self.attempts)

    @property
    def is_faster(self) -> bool:
        """Whether a benchmark found its best node faster than eager."""
        return bool(self.best and self.best.timing and self.best.timing.outcome == Outcome.FASTER)


@dataclass(frozen=True, kw_only=True)
class CardReport:
    """A card with those of its targets that a plan knows, and what was spent on it."""

    card: Card
    targets: tuple[TargetReport, ...]
    spending: Spending


@dataclass(frozen=True, kw_only=True)
class ProjectReport:
    """Everything there is to tell of a capture and of the project's casts and costs.

    Attributes:
        newer, older: how many other captures the project has.
        cards: by share of operator time.
        casts, measured: newest first.
        winners: the nodes that won something in a whole model, see store.casts.
        by_library: how many of them the library wrote.
        recorded_at: when the last of all this was recorded.
    """

    version: str
    capture: Capture
    newer: int
    older: int
    cards: tuple[CardReport, ...]
    casts: tuple[Exported, ...]
    measured: tuple[Measured, ...]
    winners: tuple[str, ...]
    by_library: int
    spending: Spending
    arms: dict[str, Spending]
    parts: dict[str, Spending]
    recorded_at: float

    @property
    def targets(self) -> Iterator[TargetReport]:
        """Those of all cards."""
        return (target for card in self.cards for target in card.targets)


class Reporter:
    """Reads what a report of one project says; it changes nothing and asks no clock, so that the
    same records give the same report."""

    def __init__(self, stores: Stores, casts: Casts, accounts: Accounts, planner: Planner) -> None:
        self._captures, self._trees = stores.captures, stores.trees
        self._casts, self._accounts, self._planner = casts, accounts, planner

    async def report(self, capture_id: str | None = None) -> ProjectReport:
        """The report of a capture, or of the newest one.

        Raises:
            UnknownId: there is none.
        """
        capture = await self._captures.get(capture_id)
        captures = await self._captures.all()
        place = [c.id for c in captures].index(capture.id)
        cards = await self._cards(capture.id)
        casts, measured = await self._casts.all(), await self._casts.measured()
        winners, arms = await self._casts.winners(), await self._accounts.arms()
        won = await self._trees.named(winners)
        return ProjectReport(
            version=__version__,
            capture=capture,
            newer=place,
            older=len(captures) - place - 1,
            cards=cards,
            casts=casts,
            measured=measured,
            winners=winners,
            by_library=sum(node.author == AUTHOR for node in won.values()),
            spending=await self._accounts.spending(),
            arms={arm: await self._accounts.spending(arm=arm) for arm in arms},
            parts={
                **await self._accounts.parts("node"),
                **await self._accounts.parts("attempt"),
            },
            recorded_at=max(_times(captures, cards, casts, measured)),
        )

    async def _cards(self, capture_id: str) -> tuple[CardReport, ...]:
        planned = await self._planner.plan(capture_id, Budget())
        allotted = {one.variant.id: one.allotment for one in planned}
        return tuple(
            [
                CardReport(
                    card=card,
                    targets=tuple([t async for t in self._targets(card, allotted)]),
                    spending=await self._accounts.spending(about=card.id),
                )
                for card in await self._captures.cards(capture_id)
            ]
        )

    async def _targets(
        self, card: Card, allotted: dict[str, Allotment]
    ) -> AsyncIterator[TargetReport]:
        """What a plan knows, and members of its families that were worked on by themselves."""
        for variant in card.variants:
            if variant.target:
                alone = Allotment(stake=stake(card, variant), evaluations=0)
                found = await self._target(variant, allotted.get(variant.id, alone))
                if variant.id in allotted or found.candidates:
                    yield found

    async def _target(self, variant: Variant, allotment: Allotment) -> TargetReport:
        nodes = await self._trees.nodes(variant.id)
        best = best_node(nodes)
        digest = best.source_digest if best else None
        return TargetReport(
            variant=variant,
            stake=allotment.stake,
            why_none=allotment.why_none,
            nodes=nodes,
            attempts=await self._trees.attempts(variant.id),
            best=best,
            source=await self._trees.source(digest) if digest else None,
        )


def _times(
    captures: Sequence[Capture],
    cards: Sequence[CardReport],
    casts: Sequence[Exported],
    measured: Sequence[Measured],
) -> Iterator[float]:
    yield from (capture.created_at for capture in captures)
    yield from (cast.at for cast in casts)
    yield from (one.at for one in measured)
    for target in (target for card in cards for target in card.targets):
        yield from (node.created_at for node in target.nodes)
        yield from (attempt.created_at for attempt in target.attempts)
