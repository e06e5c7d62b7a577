"""What quartets of samples say: faster, slower, or nothing, and how sure that is.

A control is a quartet of eager against eager, measured among the others: whatever it shows is the
machine's doing, and no candidate is believed beyond it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from kernelforge_engine.calls import Json
from kernelforge_engine.records import WITHIN_MARGIN, Outcome, Timing
from kernelforge_engine.statistics import FEWEST, fewest, paired_interval, spent_interval

GLANCED = 0.01  # the error of a first glance, which may only find a candidate slower
CONTROLLED = 0.95  # the confidence of what a control shows
WIDTHS = 2.0  # half-widths, of what the control says of a median, within which nothing is believed
HALF_WIDTH = (
    1.96 * 1.2533 * 1.4826
)  # a median's 95 % interval, from the median deviation of samples
USUAL = 0.95  # the share of the control's samples that were disturbed no more than is allowed
MOST_DROPPED = 0.5
CLOCKS_APART = 0.01
NARROW = 1.1  # the ends of an interval that tells enough of a large difference
FAR = 5.0  # margins; a wide interval is believed where even its lower end is as far as that


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The constants of one backend: sample length, quartets per look, the margin of a win, and how
    far the ends of an interval may lie apart before it says nothing. The first of the looks is an
    early one, at the fewest quartets that its level allows."""

    sample_us: float
    quartets: int
    looks: int
    delta: float
    spread: float
    scope: str


PROTOCOLS = {
    "cuda": Protocol(sample_us=200.0, quartets=50, looks=3, delta=0.01, spread=1.2, scope="K"),
    "cpu": Protocol(sample_us=4000.0, quartets=30, looks=4, delta=0.05, spread=1.6, scope="O"),
}


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """One sample: microseconds per call, how often a thread lost its processor to another, the
    ticks that the machine's host took, and the device's clock after it, 0 where that is unknown."""

    us: float
    switches: int = 0
    stolen: int = 0
    mhz: int = 0


@dataclass(frozen=True, kw_only=True)
class Quartet:
    """Two samples of eager and two of the other side; of a control that is eager again."""

    eager: tuple[Sampled, Sampled]
    other: tuple[Sampled, Sampled]

    @property
    def samples(self) -> tuple[Sampled, ...]:
        """All four."""
        return self.eager + self.other

    @property
    def means(self) -> tuple[float, float]:
        """The geometric mean of either side."""
        a, b = (math.sqrt(x.us * y.us) for x, y in (self.eager, self.other))
        return a, b

    @property
    def log_ratio(self) -> float:
        """The logarithm of eager's mean over the other's."""
        eager, other = self.means
        return math.log(eager / other)


def level(protocol: Protocol, alpha: float) -> float:
    """The error of an interval at one look: what is allowed is shared among the looks."""
    return alpha / protocol.looks


def clearly_slower(
    quartets: Sequence[Quartet], protocol: Protocol, rng: np.random.Generator
) -> Timing | None:
    """The timing of a candidate that a glance shows to be slower, None of any other."""
    timing = _timing(quartets, protocol, GLANCED, rng)
    if timing.high > 1 - protocol.delta:
        return None
    return _concluded(timing, Outcome.SLOWER, "slower in a first glance")


def far_off(timing: Timing) -> bool:
    """Whether a timing found a difference FAR times as large as the margin, and knows it closely:
    no more samples are needed."""
    if timing.high > timing.low * NARROW:
        return False
    margin = FAR * float(str(timing.evidence["margin"]))
    if timing.outcome == Outcome.FASTER:
        return timing.low >= 1 + margin
    return timing.outcome == Outcome.SLOWER and timing.high <= 1 / (1 + margin)


def decided(
    quartets: Sequence[Quartet],
    controls: Sequence[Quartet],
    protocol: Protocol,
    alpha: float,
    rng: np.random.Generator,
) -> tuple[Timing, bool]:
    """The timing after a look at `level(protocol, alpha)`, and whether another look is in vain."""
    error = level(protocol, alpha)
    kept = _undisturbed(quartets, controls)
    if len(kept) < max(fewest(error), (1 - MOST_DROPPED) * len(quartets)):
        kept = list(quartets)  # all were disturbed, and so was the control, which widens the margin
    timing = _timing(kept, protocol, error, rng)
    low, high = _control(controls, rng)
    margin = max(protocol.delta, math.expm1(WIDTHS * _scatter(controls, len(kept))))
    evidence: dict[str, Json] = {
        "dropped": len(quartets) - len(kept),
        "control": {
            "quartets": len(controls),
            "low": round(math.exp(low), 4),
            "high": round(math.exp(high), 4),
        },
        "margin": round(margin, 4),
    }
    clocks = _clocks(kept)
    if clocks:
        evidence["core_mhz"] = {"eager": round(clocks[0]), "candidate": round(clocks[1])}
    timing = replace(timing, evidence={**timing.evidence, **evidence})
    if clocks and abs(math.log(clocks[0] / clocks[1])) > CLOCKS_APART:
        return unfit(timing, "the two sides ran at different clocks"), False
    if _explains(low, high, timing, protocol):
        return unfit(timing, "eager against itself differs by more than the margin"), False
    return _weighed(timing, margin, protocol)


def _clocks(quartets: Sequence[Quartet]) -> tuple[float, float] | None:
    """The mean clock of either side in MHz, None where some sample has none."""
    eager = [s.mhz for q in quartets for s in q.eager]
    other = [s.mhz for q in quartets for s in q.other]
    return (fmean(eager), fmean(other)) if all(eager + other) else None


def _explains(low: float, high: float, timing: Timing, protocol: Protocol) -> bool:
    """Whether a control that lies within low..high is off itself, and by enough to explain what a
    candidate shows; nothing explains what is FAR times as far away."""
    near, most = math.log1p(protocol.delta), max(-low, high)
    is_far = math.log(timing.low) > FAR * most or math.log(timing.high) < -FAR * most
    return (low > near or high < -near) and not is_far


def _weighed(timing: Timing, margin: float, protocol: Protocol) -> tuple[Timing, bool]:
    low, high, near = timing.low, timing.high, protocol.delta
    if high > low * protocol.spread and low < 1 + FAR * margin:
        why = "the times scatter too widely"
        return _concluded(timing, Outcome.INCONCLUSIVE, why), False
    if low >= 1 + margin:
        return _concluded(timing, Outcome.FASTER, "the interval clears the margin"), True
    if high <= 1 - margin:
        return _concluded(timing, Outcome.SLOWER, "the interval clears the margin"), True
    if high < 1 + near:
        is_equal = low > 1 - near
        why = "it takes as long as eager" if is_equal else "it is not faster, nor clearly slower"
        return _concluded(timing, Outcome.INCONCLUSIVE, f"{why}, {WITHIN_MARGIN}"), True
    why = "the interval reaches into the margin"
    return _concluded(timing, Outcome.INCONCLUSIVE, why), False


def confirmed(first: Timing, second: Timing) -> Timing:
    """What a win and its repetition come to: the repetition's numbers, since of many candidates the
    one that looked fastest was lucky as well. Where the two exclude each other, the machine changed
    between them, and the interval spans both."""
    before: dict[str, Json] = {
        "speedup": first.speedup, "low": first.low, "high": first.high,
        "eager_us": first.eager_us, "candidate_us": first.candidate_us,
    }  # fmt: skip
    timing = replace(second, evidence={**second.evidence, "first": before})
    if second.outcome == Outcome.IMPLAUSIBLE:
        return timing
    if second.outcome != Outcome.FASTER:
        why = f"a second comparison did not find it faster: {second.evidence['why']}"
        return _concluded(timing, Outcome.INCONCLUSIVE, why)
    if first.low > second.high or second.low > first.high:
        why = "two comparisons found it faster and exclude each other: the interval spans both"
        low, high = min(first.low, second.low), max(first.high, second.high)
        return _concluded(replace(timing, low=low, high=high), Outcome.FASTER, why)
    return _concluded(timing, Outcome.FASTER, "two comparisons clear the margin")


def unfit(timing: Timing, why: str) -> Timing:
    """The same numbers, from which nothing follows."""
    return _concluded(timing, Outcome.INCONCLUSIVE, f"this machine is unfit: {why}")


def _concluded(timing: Timing, outcome: Outcome, why: str) -> Timing:
    return replace(timing, outcome=outcome, evidence={**timing.evidence, "why": why})


def _timing(
    quartets: Sequence[Quartet], protocol: Protocol, error: float, rng: np.random.Generator
) -> Timing:
    """The numbers alone, nothing concluded."""
    middle, low, high = np.exp(spent_interval(_log_ratios(quartets), error, rng))
    eager_us, candidate_us = (
        median(side) for side in zip(*(q.means for q in quartets), strict=True)
    )
    return Timing(
        outcome=Outcome.INCONCLUSIVE,
        speedup=float(middle),
        low=float(low),
        high=float(high),
        eager_us=eager_us,
        candidate_us=candidate_us,
        scope=protocol.scope,
        evidence={"quartets": len(quartets), "confidence": 1 - error},
    )


def _control(controls: Sequence[Quartet], rng: np.random.Generator) -> tuple[float, float]:
    """Where eager against itself lies, in logarithms; the ends of a few where time was short."""
    ratios = _log_ratios(controls)
    if ratios.size < FEWEST:
        return float(ratios.min()), float(ratios.max())
    _, low, high = paired_interval(ratios, CONTROLLED, rng)
    return low, high


def _scatter(controls: Sequence[Quartet], count: int) -> float:
    """How far the median of so many controls would lie from the truth, by how far they lie apart;
    the few that are far off, as on any busy machine, do not count for more than the others."""
    ratios = _log_ratios(controls)
    deviation = float(np.median(np.abs(ratios - np.median(ratios))))
    return HALF_WIDTH * deviation / math.sqrt(max(1, count))


def _undisturbed(quartets: Sequence[Quartet], controls: Sequence[Quartet]) -> list[Quartet]:
    """The quartets of which no sample was disturbed more than the control's samples usually are."""
    usual = [s for q in controls for s in q.samples]
    switches = np.quantile([s.switches for s in usual], USUAL)
    stolen = np.quantile([s.stolen for s in usual], USUAL)
    return [
        q for q in quartets if all(s.switches <= switches and s.stolen <= stolen for s in q.samples)
    ]


def _log_ratios(quartets: Sequence[Quartet]) -> NDArray[np.float64]:
    return np.array([q.log_ratio for q in quartets])
