"""The report as one JSON document, for programs: figures as they are on record."""

from collections import Counter
from typing import Any

from kernelforge_engine import codec
from kernelforge_engine.planning import model_share
from kernelforge_engine.reporting import CardReport, ProjectReport, TargetReport
from kernelforge_engine.search.budget import amdahl, amdahl_line
from kernelforge_engine.usage import Spending
from kernelforge_server.cli.measurements import measurement_document
from kernelforge_tools.findings import doubt
from kernelforge_tools.spending import SpendingView


def document(found: ProjectReport) -> dict[str, Any]:
    """Everything in the report."""
    return {
        "kernelforge": found.version,
        "recorded_at": found.recorded_at,
        "capture": {**codec.dump(found.capture), "doubt": doubt(found.capture)},
        "cards": [_card(one) for one in found.cards],
        "casts": [codec.dump(cast) for cast in found.casts],
        "measurements": [
            {**codec.dump(one), "measurement": measurement_document(one.measurement)}
            for one in found.measured
        ],
        "winners": list(found.winners),
        "usage": _spent(found.spending),
        "arms": {arm: _spent(spent) for arm, spent in found.arms.items()},
    }


def _card(one: CardReport) -> dict[str, Any]:
    card = one.card
    share = model_share(card, card.share)
    return {
        "id": card.id,
        "operator": card.operator,
        "calls": card.calls,
        "share": card.share,
        "wall_share": card.wall_share,
        "headroom": card.headroom,
        "model_at_most": amdahl(share, card.headroom),
        "amdahl": amdahl_line(share, card.headroom),
        "usage": _spent(one.spending),
        "targets": [_target(target) for target in one.targets],
    }


def _target(target: TargetReport) -> dict[str, Any]:
    node = target.best
    best = {"node_id": node.id, "label": node.label, **_timing(target)} if node else None
    refused = Counter(str(attempt.verdict.status) for attempt in target.attempts)
    return {
        "variant_id": target.variant.id,
        "candidates": target.candidates,
        "valid": target.candidates - sum(refused.values()),
        "refused": dict(refused),
        "best": best,
        "why_no_more": target.why_none,
    }


def _timing(target: TargetReport) -> dict[str, Any]:
    timing = target.best.timing if target.best else None
    names = ("outcome", "speedup", "low", "high", "eager_us", "candidate_us")
    return {name: getattr(timing, name, None) for name in names}


def _spent(spent: Spending) -> dict[str, Any]:
    return SpendingView.of(spent).model_dump(exclude_none=True)
