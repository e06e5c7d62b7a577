"""Where the next evaluation of a candidate is worth most, and when it is worth nothing.

What a model can gain is bounded by Amdahl: a part `share` of its time that becomes `headroom` times
faster at best makes the whole 1 / (1 - share (1 - 1 / headroom)) times faster. The value of one
more evaluation of a target is estimated as

    share x (1 / now - 1 / headroom) x chance

the part of the model's time between what it takes now and its floor, times the chance that the
evaluation finds something faster than the best so far. That chance is (1 + wins) / (3 + tried), a
third before anything was tried: of the 33 operators of the published runs 14 ended faster than
eager. Everything is a function of what was recorded, so a plan is made anew after every result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import inf

from kernelforge_engine.errors import BadOption

LEAST_GAIN = 0.005  # of the model's time: less is not worth a candidate
PATIENCE = 6  # evaluations in a row that bring nothing
NEAR_FLOOR = 0.9  # of the head-room
HOPELESS = 0.5  # of eager's speed: what six candidates do not reach, more of them will not
SHORT = 1000.0  # from here on a head-room is shown without a fraction
ARMS = {"opt0": 1, "opt5": 6, "opt10": 11, "opt20": 21, "opt50": 51}  # a first version and N more


@dataclass(frozen=True, kw_only=True)
class Stake:
    """A target as far as its budget is concerned.

    Attributes:
        share: its part of the model's time.
        results: the speed-up over eager of every evaluation in order, None for one that failed.
    """

    id: str
    share: float
    headroom: float
    results: tuple[float | None, ...] = ()

    @property
    def best(self) -> float:
        """The highest speed-up over eager so far, 0 before there is one."""
        return max((r for r in self.results if r is not None), default=0.0)

    @property
    def now(self) -> float:
        """What serves its calls: the best candidate, or eager."""
        return max(1.0, self.best)

    @property
    def wins(self) -> int:
        """How often an evaluation beat eager and everything before it."""
        best, wins = 1.0, 0
        for result in self.results:
            if result is not None and result > best:
                best, wins = result, wins + 1
        return wins

    @property
    def idle(self) -> int:
        """The evaluations since the last that was faster than all before it, eager left out."""
        best, last = 0.0, 0
        for number, result in enumerate(self.results, 1):
            if result is not None and result > best:
                best, last = result, number
        return len(self.results) - last

    @property
    def most(self) -> float:
        """The part of the model's time that a kernel at the floor would save."""
        return saved(self.share, self.headroom)

    @property
    def left(self) -> float:
        """The part of the model's time that is still to be saved."""
        return self.share * max(0.0, 1 / self.now - 1 / max(self.headroom, 1.0))

    @property
    def chance(self) -> float:
        """The estimated chance that one more evaluation finds something faster."""
        return (1 + self.wins) / (3 + len(self.results))

    @property
    def value(self) -> float:
        """The part of the model's time that one more evaluation may be expected to save at most."""
        return self.left * self.chance


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How many evaluations may be spent, in all and on one target; None is no limit."""

    total: int | None = None
    each: int | None = None


@dataclass(frozen=True, kw_only=True)
class Allotment:
    """What a plan gives a target: so many more evaluations, or none and why."""

    stake: Stake
    evaluations: int
    why_none: str | None = None


def limits(total: int | None, each: str | None) -> Budget:
    """A budget in words: `each` is a number of evaluations, or a published arm, as opt5, which is a
    first version and 5 more.

    Raises:
        BadOption: it is neither.
    """
    if each is None or each in ARMS:
        return Budget(total=total, each=ARMS[each] if each else None)
    if not (each.isascii() and each.isdigit() and int(each) > 0):
        accepted = f"a number from 1 on, {', '.join(ARMS)}"
        raise BadOption(field="each", value=each, why="unknown limit", accepted=accepted)
    return Budget(total=total, each=int(each))


def saved(share: float, headroom: float) -> float:
    """The part of the model's time that a kernel at the floor would save."""
    return share * (1 - 1 / max(headroom, 1.0))


def amdahl(share: float, headroom: float) -> float:
    """How many times faster the whole model gets at most."""
    part = saved(share, headroom)
    return 1 / (1 - part) if part < 1 else inf


def amdahl_line(share: float, headroom: float) -> str:
    """The same with its arithmetic."""
    part = saved(share, headroom)
    times = max(headroom, 1.0)
    shown = f"{times:.3g}" if times < SHORT else f"{times:,.0f}"
    return (
        f"{share:.2%} of the model's time x (1 - 1/{shown}) = {part:.2%}: "
        f"the whole model at most {amdahl(share, headroom):.4g}x"
    )


def not_worth_it(stake: Stake) -> str | None:
    """Why nothing should be spent on a target at all, with the arithmetic, or None."""
    if stake.most >= LEAST_GAIN:
        return None
    return f"not worth it: {amdahl_line(stake.share, stake.headroom)}, under {LEAST_GAIN:.1%}"


def stopped(stake: Stake) -> str | None:
    """Why no more should be spent on a target, or None."""
    tried = len(stake.results)
    if stake.best >= max(1.0, NEAR_FLOOR * stake.headroom):
        return f"at the floor: {stake.best:.3g}x of {stake.headroom:.3g}x"
    if tried >= PATIENCE and stake.best < HOPELESS:
        return f"not near eager: {stake.best:.2g}x at best of {tried} tried"
    if stake.best < 1.0 and stake.idle >= PATIENCE:
        return f"no nearer to eager in {stake.idle} tries: {stake.best:.2g}x"
    if stake.idle >= 2 * PATIENCE:
        return f"nothing faster than {stake.best:.3g}x in {stake.idle} tries"
    if tried and stake.left < LEAST_GAIN:
        return f"only {stake.left:.2%} of the model's time is left to save"
    return None


def next_stake(stakes: Iterable[Stake], budget: Budget, spent: int = 0) -> Stake | None:
    """The target that the next evaluation goes to, `spent` having been spent of the total; None
    where no more should be."""
    if budget.total is not None and spent >= budget.total:
        return None
    open_ones = [s for s in stakes if _why_none(s, budget) is None]
    return max(open_ones, key=lambda s: s.value, default=None)


def plan(stakes: Sequence[Stake], budget: Budget) -> tuple[Allotment, ...]:
    """How the budget is spent if no evaluation finds anything, most first: the first result that
    does is a reason to plan again."""
    given = [0] * len(stakes)
    waiting = [(-s.value, n, s) for n, s in enumerate(stakes) if _why_none(s, budget) is None]
    heapify(waiting)
    while waiting and (budget.total is None or sum(given) < budget.total):
        _, number, chosen = heappop(waiting)
        given[number] += 1
        failed = replace(chosen, results=(*chosen.results, None))
        if _why_none(failed, budget) is None:
            heappush(waiting, (-failed.value, number, failed))
    allotments = [_allotment(s, n, budget) for s, n in zip(stakes, given, strict=True)]
    return tuple(sorted(allotments, key=lambda a: (-a.evaluations, -a.stake.value)))


def _allotment(stake: Stake, evaluations: int, budget: Budget) -> Allotment:
    why = None if evaluations else _why_none(stake, budget) or "others promise more"
    return Allotment(stake=stake, evaluations=evaluations, why_none=why)


def _why_none(stake: Stake, budget: Budget) -> str | None:
    if budget.each is not None and len(stake.results) >= budget.each:
        return f"its limit of {budget.each} is used"
    return not_worth_it(stake) or stopped(stake)
