"""The built-in proposer: library kernels, handed in along mcts_select with no model."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from kernelforge_engine.codec import sha256
from kernelforge_engine.errors import MeasurementFailed
from kernelforge_engine.exchanges import (
    Attempt,
    Notice,
    OptimizeReport,
    OptimizeRow,
    Progress,
    Proposal,
    Submission,
)
from kernelforge_engine.launch.describe import variant_text
from kernelforge_engine.library.catalog import Offer
from kernelforge_engine.planning import stake
from kernelforge_engine.records import Card, Node, Outcome, Status, Variant
from kernelforge_engine.search.budget import Stake
from kernelforge_engine.selecting import REPAIRS, Selection
from kernelforge_engine.store.trees import is_valid

AUTHOR = "library"
MOST_NOTED = 400  # characters
WORTH_A_TRY = 0.001  # share of the captured time below which a variant is left alone


class Forge(Protocol):
    """What the proposer needs of an engine."""

    async def cards(self, capture_id: str | None = None) -> tuple[Card, ...]: ...
    async def offers(self, variant_id: str) -> tuple[Offer, ...]: ...
    async def tree(self, variant_id: str) -> tuple[Node, ...]: ...
    async def attempts(self, variant_id: str) -> tuple[Attempt, ...]: ...
    async def select(
        self, variant_id: str, *, holder: str, max_repairs: int = REPAIRS
    ) -> Selection: ...
    async def submit(self, proposal: Proposal, notice: Notice) -> Submission: ...
    async def benchmark(self, node_id: str, notice: Notice) -> Node: ...


@dataclass(kw_only=True)
class _Tally:
    proposals: int = 0
    valid: int = 0
    refused: dict[Status, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


@dataclass(kw_only=True)
class _Shelf:
    """A variant with the library sources that were not tried on it yet, and its results."""

    variant: Variant
    offers: list[Offer]
    stake: Stake

    def learn(self, result: float | None) -> None:
        self.stake = replace(self.stake, results=(*self.stake.results, result))


class Optimizer:
    """Spends each proposal on the variant where it is worth most by what is known by then, until
    the budget or the offers are used."""

    def __init__(self, forge: Forge, clock: Callable[[], float]) -> None:
        self._forge, self._clock = forge, clock

    async def run(self, capture_id: str | None, budget: int, notice: Notice) -> OptimizeReport:
        """Propose, judge and time; what an earlier run already tried is not tried again."""
        tally = _Tally()
        shelves = [await self._shelf(c, v, notice) for c, v in await self._targets(capture_id)]
        while tally.proposals < budget:
            open_ones = [shelf for shelf in shelves if shelf.offers]
            if not open_ones:
                break
            shelf = max(open_ones, key=lambda s: s.stake.value)
            await self._try(shelf, budget, tally, notice)
        return await self._report(capture_id, tally)

    async def _targets(self, capture_id: str | None) -> list[tuple[Card, Variant]]:
        """Operators at one size, and what else the user's own library has a kernel for: the
        built-in one has none for a region or for every size."""
        cards = await self._forge.cards(capture_id)
        worth = [(c, v) for c in cards for v in c.variants if v.target and v.share >= WORTH_A_TRY]
        return [(c, v) for c, v in worth if _is_exact(v) or await self._offers(v)]

    async def _offers(self, variant: Variant) -> list[Offer]:
        found = await self._forge.offers(variant.id)
        return [offer for offer in found if offer.origin or _is_exact(variant)]

    async def _shelf(self, card: Card, variant: Variant, notice: Notice) -> _Shelf:
        for node in await self._forge.tree(variant.id):
            if is_valid(node) and node.timing is None:
                await self._timed(node, notice)
        nodes = await self._forge.tree(variant.id)
        attempts = await self._forge.attempts(variant.id)
        tried = {n.source_digest for n in nodes} | {a.source_digest for a in attempts}
        offers = [o for o in await self._offers(variant) if sha256(o.text) not in tried]
        results = tuple(n.timing.speedup for n in nodes if n.timing and is_valid(n))
        known = stake(card, variant, (*results, *(None for _ in attempts)))
        return _Shelf(variant=variant, offers=offers, stake=known)

    async def _try(self, shelf: _Shelf, budget: int, tally: _Tally, notice: Notice) -> None:
        offer, call = shelf.offers.pop(0), shelf.variant.call
        text = f"{call.name} {variant_text(call)}: {offer.name}"
        notice(Progress(done=tally.proposals, total=budget, text=text))
        shelf.learn(await self._propose(shelf.variant, offer, tally))

    async def _propose(self, variant: Variant, offer: Offer, tally: _Tally) -> float | None:
        """The speed-up over eager, None where it failed or could not be timed."""
        selection = await self._forge.select(variant.id, holder=AUTHOR, max_repairs=0)
        start = self._clock()
        proposal = Proposal(
            text=offer.text,
            variant_id=variant.id,
            lease_id=selection.lease.id,
            author=AUTHOR,
            note=f"{offer.name}: {offer.origin}"[:MOST_NOTED] if offer.origin else offer.name,
        )
        submission = await self._forge.submit(proposal, _silent)
        tally.proposals += 1
        if submission.node is None:
            status = submission.verdict.status
            tally.refused[status] = tally.refused.get(status, 0) + 1
            return None
        tally.valid += 1
        speedup = await self._timed(submission.node, _silent)
        tally.seconds.append(self._clock() - start)
        return speedup

    async def _timed(self, node: Node, notice: Notice) -> float | None:
        try:
            timing = (await self._forge.benchmark(node.id, notice)).timing
        except MeasurementFailed as failure:
            notice(Progress(done=0, total=1, text=str(failure)))
            return None
        return timing.speedup if timing else None

    async def report(self, capture_id: str | None) -> OptimizeReport:
        """The best node of every target, without proposing anything; regions and shape families
        stand there only where they have one."""
        return await self._report(capture_id, _Tally())

    async def _report(self, capture_id: str | None, tally: _Tally) -> OptimizeReport:
        cards = await self._forge.cards(capture_id)
        variants = sorted(
            (v for c in cards for v in c.variants if v.target), key=lambda v: -v.share
        )
        best = [(v, best_node(await self._forge.tree(v.id))) for v in variants]
        rows = [_row(v, node) for v, node in best if node or _is_exact(v)]
        return OptimizeReport(
            rows=tuple(rows),
            proposals=tally.proposals,
            valid=tally.valid,
            faster=sum(r.outcome == Outcome.FASTER for r in rows),
            refused=tally.refused,
            verdict_seconds=tuple(round(s, 3) for s in tally.seconds),
        )


def best_node(nodes: tuple[Node, ...]) -> Node | None:
    """The timed node with the highest lower bound that is valid; a faster one comes first."""
    timed = [
        n
        for n in nodes
        if is_valid(n) and n.timing is not None and n.timing.outcome != Outcome.IMPLAUSIBLE
    ]
    return max(
        timed,
        key=lambda n: (n.timing.outcome == Outcome.FASTER, n.timing.low) if n.timing else (),
        default=None,
    )


def _is_exact(variant: Variant) -> bool:
    """Whether this is an operator at one size, not a region or a shape family."""
    return variant.family is None and variant.call.region is None


def _row(variant: Variant, node: Node | None) -> OptimizeRow:
    timing = node.timing if node else None
    return OptimizeRow(
        variant_id=variant.id,
        operator=variant.call.name,
        variant=_text(variant),
        calls=variant.calls,
        share=variant.share,
        node_id=node.id if node else None,
        label=node.label if node else None,
        outcome=timing.outcome if timing else None,
        eager_us=timing.eager_us if timing else variant.eager_us,
        candidate_us=timing.candidate_us if timing else None,
        speedup=timing.speedup if timing else None,
        low=timing.low if timing else None,
        high=timing.high if timing else None,
    )


def _text(variant: Variant) -> str:
    text = variant_text(variant.call)
    return f"{text} and {len(variant.family.members) - 1} other sizes" if variant.family else text


def _silent(_progress: Progress) -> None:
    """Progress inside one proposal is too short to show."""
