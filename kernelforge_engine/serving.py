"""Which calls a node serves in a cast: that of its variant, or those of a shape family's members.

A family is served where it was judged, and where the nearest size that was timed was found faster:
every other member is left to eager.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelforge_engine.calls import Call
from kernelforge_engine.fitting import Numbers, distance
from kernelforge_engine.members import is_judged_at
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.records import Family, Node, Outcome, SizeTiming, Timing, Variant, Verdict
from kernelforge_engine.submission import Candidate, plans_at

Key = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Service:
    """One call that a node serves; `low` is the measured lower bound that speaks for it, and
    `timing` is its own, None where the nearest member was timed in its place. Of a region, `inside`
    counts the operators that one call of it runs, and `within` names the regions that hold it."""

    node: Node
    verdict: Verdict
    candidate: Candidate
    call: Call
    plan: ResolvedPlan
    timing: Timing | None
    low: float
    calls: int
    share: float
    inside: Mapping[str, int]
    within: tuple[str, ...]

    @property
    def key(self) -> Key:
        return self.call.name, self.call.words


def services(node: Node, variant: Variant, candidate: Candidate) -> tuple[Service, ...]:
    """What a valid node that was benchmarked serves, today's members of its family one by one."""
    if node.timing is None or node.verdict is None:
        return ()
    only = Service(
        node=node,
        verdict=node.verdict,
        candidate=candidate,
        call=variant.call,
        plan=candidate.plan,
        timing=node.timing,
        low=node.timing.low,
        calls=variant.calls,
        share=variant.share,
        inside={inner.operator: inner.calls for inner in variant.inside},
        within=variant.within,
    )
    if variant.family is None:
        return (only,)
    return tuple(_members(only, variant, variant.family, node.timing))


def without_rivals(found: Iterable[Service]) -> tuple[Service, ...]:
    """Each call once: the kernel with the larger lower bound serves it."""
    best: dict[Key, Service] = {}
    for one in found:
        if one.key not in best or one.low > best[one.key].low:
            best[one.key] = one
    return tuple(best.values())


def counted_once(found: Sequence[Service]) -> tuple[Service, ...]:
    """The same services, whose calls and shares do not overlap any more.

    A region that is served does not run the operators and regions inside it. Which of an operator's
    calls these are was not recorded, nor how often a region lies in another one, so what may be
    inside counts as inside: less is claimed than is saved, never more.
    """
    regions = [one for one in found if one.call.region is not None]
    return tuple(_outside(one, found, regions) for one in found)


def _outside(one: Service, found: Sequence[Service], regions: Sequence[Service]) -> Service:
    """A service without those of its calls that lie inside the regions."""
    if one.call.region is not None:
        held = sum(r.share for r in regions if r.call.operator in one.within)
        left = max(0.0, 1 - held / one.share) if held and one.share else 1.0
    else:
        inside = sum(r.calls * r.inside.get(one.call.name, 0) for r in regions)
        calls = sum(other.calls for other in found if other.call.name == one.call.name)
        left = max(0.0, 1 - inside / calls) if calls else 1.0
    return replace(one, calls=int(one.calls * left), share=one.share * left)


def _members(whole: Service, variant: Variant, family: Family, timing: Timing) -> Iterator[Service]:
    total = sum(m.calls * m.eager_us for m in family.members)
    for member in family.members:
        nearest = _nearest(timing, member.sizes)
        if nearest is None or nearest.outcome != Outcome.FASTER:
            continue
        if not (is_judged_at(whole.verdict, member.sizes) and _within(timing, member.sizes)):
            continue
        (sized,) = plans_at(whole.candidate.source, variant, [member.sizes])
        yield replace(
            whole,
            call=member.call,
            plan=sized.plan,
            timing=_own(timing, nearest, member.sizes),
            low=nearest.low,
            calls=member.calls,
            share=variant.share * member.calls * member.eager_us / total if total else 0.0,
        )


def _within(timing: Timing, values: Numbers) -> bool:
    """Whether sizes lie between those that were timed."""
    timed = [size.sizes for size in timing.sizes]
    return all(min(of) <= v <= max(of) for *of, v in zip(*timed, values, strict=True))


def _nearest(timing: Timing, values: Numbers) -> SizeTiming | None:
    return min(timing.sizes, key=lambda t: (distance(t.sizes, values), t.low), default=None)


def _own(timing: Timing, nearest: SizeTiming, values: Numbers) -> Timing | None:
    if nearest.sizes != values:
        return None
    return Timing(
        outcome=nearest.outcome,
        speedup=nearest.speedup,
        low=nearest.low,
        high=nearest.high,
        eager_us=nearest.eager_us,
        candidate_us=nearest.candidate_us,
        scope=timing.scope,
    )
