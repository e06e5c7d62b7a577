"""What a capture found, in a few facts."""

from collections.abc import Iterable
from typing import Any

from kernelforge_engine.records import Capture, Card
from kernelforge_tools.answer import View
from kernelforge_tools.wording import rounded, shortened_list

SHOWN = 5
MAX_ERROR_CHARS = 400
BOUND = {
    "launch-bound": "Kernels fill little of the time: fewer, larger ones win, so look at regions.",
    "memory-bound": "Moving tensors takes the time: touch each one once, so fuse what reads it "
    "again, and look where headroom is large.",
    "compute-bound": "Arithmetic takes the time: only operators far above their floor can gain.",
}
OVERLAP = "Shares of regions overlap those of operators and of each other: do not add them."


class Findings(View):
    """How a model ran; `wall_us` is its own clock, `busy_us` the sum of its operators."""

    capture_id: str
    device: str
    calls: int
    wall_us: float | None = None
    busy_us: float
    busy_share: float | None = None
    doubt: str | None = None
    """Why its times say little, where that is so."""
    bound: str | None = None
    means: str | None = None
    """What the bound means for the work."""
    level: str | None = None
    """Set when the forward uses gradients: operators were recorded in decomposed form."""
    coverage: float | None = None
    """The part of an unobserved run's calls that was recorded."""
    unseen: str | None = None
    not_targets: str | None = None
    """Why operators are no targets, with the share of each reason."""
    error: str | None = None
    """What the model raised; what ran before it is kept."""


def findings(capture: Capture, cards: Iterable[Card], busy: str | None = None) -> dict[str, Any]:
    """The fields of Findings, of a machine that may be `busy`; what a doubtful time cannot tell is
    left out."""
    wall, why = capture.wall_us, doubt(capture) or busy
    bound = None if why else capture.believed_bound
    return {
        "capture_id": capture.id,
        "device": capture.device_name,
        "calls": capture.calls,
        "wall_us": None if wall is None else rounded(wall),
        "busy_us": rounded(capture.busy_us),
        "busy_share": rounded(capture.busy_us / wall) if wall else None,
        "doubt": why,
        "bound": bound,
        "means": BOUND[bound] if bound else None,
        "level": None if capture.level == "whole" else capture.level,
        "coverage": None if capture.coverage is None else rounded(capture.coverage),
        "unseen": unseen(capture),
        "not_targets": not_targets(cards),
        "error": capture.error and capture.error[:MAX_ERROR_CHARS],
    }


def doubt(capture: Capture) -> str | None:
    """Why the times of a capture say little, where that is so."""
    if not capture.is_disturbed or not capture.wall_us:
        return None
    return (
        f"Its operators took {capture.busy_us / capture.wall_us:.1f} times as long as the model "
        "itself: other work on this machine got into the timings, and shares, gains and what holds "
        "the model back say little. Capture again when it is calm."
    )


def unseen(capture: Capture) -> str | None:
    """The calls that only an unobserved run made, most frequent first."""
    most = sorted(capture.unseen.items(), key=lambda item: -item[1])
    return ", ".join(shortened_list([f"{name} x{n}" for name, n in most], SHOWN)) or None


def not_targets(cards: Iterable[Card]) -> str | None:
    """The reasons why operators are no targets, each with its share, in one line."""
    shares: dict[str, float] = {}
    for card in cards:
        for variant in () if card.is_region else card.variants:
            if not variant.target and variant.family is None:
                reason = variant.reason or "not measured"
                shares[reason] = shares.get(reason, 0.0) + variant.share
    dearest = sorted(shares.items(), key=lambda item: -item[1])
    return "; ".join(shortened_list([f"{why} {s:.1%}" for why, s in dearest], SHOWN)) or None
