"""A candidate for a shape family at its other sizes: members, and sizes that no member has."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kernelforge_engine.calls import Json
from kernelforge_engine.members import at_size, nearest
from kernelforge_engine.pool.orders import JudgeOrder, SizedPlan, Timed, TimeOrder
from kernelforge_engine.records import Family, SizeTiming, Status, Timing, Verdict
from kernelforge_engine.worker.roofline import Roofline
from kernelforge_engine.worker.timing import Comparison
from kernelforge_engine.worker.verdicts import Case, Evaluation

SPOT_CHECKS = ("resampled", "normal", "shifted", "special")  # draws beside captured examples


def judged(order: JudgeOrder, case: Case, secret: bytes) -> Verdict:
    """The verdict on the main case, and on every other size where the order has some."""
    evaluation = Evaluation(case, secret, tier=order.tier)
    verdict = evaluation.verdict(order.plan, order.artifact, order.environment)
    family = order.variant.family
    if family is None:
        return verdict
    dearest = family.dearest.sizes
    found = {family.named(dearest): verdict.evidence.get("draws")}
    if verdict.status != Status.VALID:
        return _at(verdict, family, dearest)
    judged_at = [dearest]
    unjudged: list[str] = []
    for sized, other in _cases(order, family):
        name = family.named(sized.sizes)
        evaluation = Evaluation(other, secret, SPOT_CHECKS)
        if evaluation.typical is None:
            unjudged.append(name)
            continue
        latest = evaluation.verdict(sized.plan, order.artifact, order.environment)
        if latest.status != Status.VALID:
            return _at(latest, family, sized.sizes)
        judged_at.append(sized.sizes)
        found[name] = latest.evidence["draws"]
    evidence: dict[str, Json] = {
        "sizes": found,
        "judged_at": [list(sizes) for sizes in judged_at],
        "held_out_unjudged": list(unjudged),
    }
    return replace(
        verdict,
        reason=f"{verdict.reason} at {family.named(dearest)}, and at {len(found) - 1} other sizes",
        evidence={**verdict.evidence, **evidence},
    )


def timed(order: TimeOrder, case: Case, secret: bytes, roofline: Roofline, shims: Path) -> Timed:
    """The timing of the main case, with those of the other members that the order has."""
    main = Comparison(case, secret, roofline, shims, order.attempt).timed(
        order.plan, order.artifact, order.environment
    )
    family = order.variant.family
    if family is None:
        return main
    if main.timing is None or main.verdict is not None:
        return _failed(main, family, family.dearest.sizes)
    found = [_short(family.dearest.sizes, main.timing)]
    for sized, other in _cases(order, family):
        comparison = Comparison(other, secret, roofline, shims, order.attempt)
        latest = comparison.timed(sized.plan, order.artifact, order.environment)
        if latest.timing is None:
            return _failed(latest, family, sized.sizes)
        found.append(_short(sized.sizes, latest.timing))
    return Timed(timing=replace(main.timing, sizes=tuple(found)))


def _cases(order: JudgeOrder | TimeOrder, family: Family) -> Iterator[tuple[SizedPlan, Case]]:
    """One at a time: their tensors need not lie on the device together."""
    blobs = Path(order.blobs)
    for sized in order.others:
        variant = at_size(order.variant, sized.sizes)
        like = None
        if not variant.examples:
            member = nearest(family, sized.sizes)
            like = Case(at_size(order.variant, member.sizes), blobs)
        yield sized, Case(variant, blobs, like)


def _at(verdict: Verdict, family: Family, sizes: tuple[int, ...]) -> Verdict:
    name = family.named(sizes)
    return replace(
        verdict,
        reason=f"at {name}: {verdict.reason}",
        evidence={**verdict.evidence, "size": name},
    )


def _failed(timed: Timed, family: Family, sizes: tuple[int, ...]) -> Timed:
    return replace(timed, verdict=timed.verdict and _at(timed.verdict, family, sizes))


def _short(sizes: tuple[int, ...], timing: Timing) -> SizeTiming:
    return SizeTiming(
        sizes=sizes,
        outcome=timing.outcome,
        speedup=timing.speedup,
        low=timing.low,
        high=timing.high,
        eager_us=timing.eager_us,
        candidate_us=timing.candidate_us,
    )
