"""What kernels should save by their own timings, held against what the model saved."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelforge_engine.measurements import Saving
from kernelforge_engine.records import Timing

LEAST, MOST = 0.5, 1.2  # of the prediction; a measured saving outside is flagged
HINTS = "overlap with other work, cache effects, or a wrong region"


@dataclass(frozen=True, kw_only=True)
class Hits:
    """How many calls of one run an entry of a cast served, and its own timing, if it has one."""

    node_id: str
    operator: str
    timing: Timing | None
    hits: int


def predicted_us(served: Iterable[Hits]) -> float | None:
    """The sum over calls of eager_us - candidate_us; None where calls were served and not one of
    them at a size that was timed."""
    found = list(served)
    timed = [
        h.hits * (h.timing.eager_us - h.timing.candidate_us) for h in found if h.timing is not None
    ]
    if not timed and any(h.hits for h in found):
        return None
    return sum(timed)


def saving(
    served: Sequence[Hits], original_us: float, measured: tuple[float, float, float]
) -> Saving:
    """The prediction for one run beside the measured saving with its interval (value, low, high).

    share = sum of hits x eager_us / original_us; ceiling = 1 / (1 - share) (Amdahl).
    """
    expected = predicted_us(served) or 0.0
    share = sum(h.hits * h.timing.eager_us for h in served if h.timing) / original_us
    value, low, high = measured
    return Saving(
        predicted_us=expected,
        measured_us=value,
        low_us=low,
        high_us=high,
        share=share,
        ceiling=1 / (1 - share) if share < 1 else None,
        untimed_hits=sum(h.hits for h in served if h.timing is None),
        flag=_flag(expected, measured),
    )


def _flag(expected: float, measured: tuple[float, float, float]) -> str | None:
    value, low, high = measured
    least, most = LEAST * expected, MOST * expected
    if expected <= 0 or least <= value <= most:
        return None
    if low <= most and high >= least:
        return "measured too loosely to be held against what was predicted"
    return f"outside [{LEAST}, {MOST}] x predicted: {HINTS}"
