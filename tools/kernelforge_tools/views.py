"""Records as an agent and a reader of `--json` see them: rounded, in words, without bulk."""

from collections.abc import Iterable, Mapping
from typing import Any

from kernelforge_engine.calls import Json
from kernelforge_engine.exchanges import Attempt, CastEntrySummary
from kernelforge_engine.explanations import explained
from kernelforge_engine.launch.describe import plain_arguments, tensor_text, variant_text
from kernelforge_engine.planning import model_share
from kernelforge_engine.records import Card, Inner, Node, Timing, Variant, Verdict
from kernelforge_engine.search.budget import amdahl
from kernelforge_tools.answer import View
from kernelforge_tools.wording import brief, first_error, meanings, rounded, shortened_list

SHOWN_IDS = 3
SHOWN_NAMES = 3
MAX_VARIANT_CHARS = 160
MAX_REASON_CHARS = 110


class TimingView(View):
    """A comparison with eager; speedup is eager over candidate, with its 99 % interval."""

    outcome: str
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    eager_us: float | None = None
    candidate_us: float | None = None

    @classmethod
    def of(cls, timing: Timing | CastEntrySummary) -> "TimingView":
        """The numbers of a timing; a node that was exported untimed has none."""
        return cls(
            outcome=timing.outcome or "not timed",
            speedup=_rounded(timing.speedup),
            low=_rounded(timing.low),
            high=_rounded(timing.high),
            eager_us=_rounded(timing.eager_us),
            candidate_us=_rounded(timing.candidate_us),
        )


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded(value)


class VariantRow(View):
    """Calls of one operator with the same tensors and arguments."""

    id: str
    inputs: list[str]
    outputs: list[str]
    arguments: dict[str, Json]
    calls: int
    eager_us: float
    floor_us: float
    share: float
    headroom: float
    module: str | None = None
    not_a_target: str | None = None
    """Why no kernel is wanted for it, where that is so."""

    @classmethod
    def of(cls, variant: Variant) -> "VariantRow":
        """The row of a variant."""
        call = variant.call
        return cls(
            id=variant.id,
            inputs=[tensor_text(spec) for spec in call.inputs],
            outputs=[tensor_text(output.tensor) for output in call.outputs],
            arguments={a.name: a.value for a in plain_arguments(call)},
            calls=variant.calls,
            eager_us=rounded(variant.eager_us),
            floor_us=rounded(variant.floor_us),
            share=rounded(variant.share),
            headroom=rounded(variant.headroom),
            module=variant.module or None,
            not_a_target=None if variant.target else variant.reason or "not measured as one",
        )


class VariantLine(View):
    """A variant in short: its tensors, then its other arguments."""

    id: str
    variant: str
    calls: int
    eager_us: float
    floor_us: float
    share: float
    not_a_target: str | None = None

    @classmethod
    def of(cls, variant: Variant) -> "VariantLine":
        """The line of a variant."""
        text = variant_text(variant.call)
        cut = len(text) > MAX_VARIANT_CHARS
        return cls(
            id=variant.id,
            variant=f"{text[:MAX_VARIANT_CHARS]}..." if cut else text,
            calls=variant.calls,
            eager_us=rounded(variant.eager_us),
            floor_us=rounded(variant.floor_us),
            share=rounded(variant.share),
            not_a_target=None if variant.target else variant.reason or "not measured as one",
        )


class CardBrief(View):
    """One operator or region of a capture; share is its part of the time all operators took."""

    id: str
    kind: str
    """`operator`, or `region`: a module's forward or a function as one target."""
    operator: str
    calls: int
    share: float
    wall_share: float | None = None
    headroom: float
    gain: float
    """What kernels at the floor would save of all operator time."""
    model_at_most: float
    """How many times faster the whole model gets then (Amdahl)."""
    launches: int | None = None
    """Kernels that one eager call of a region launches."""
    inside: list[str] | None = None
    """The operators of a region that take the most time."""
    within: list[str] | None = None
    """The regions that hold it."""
    targets: list[str]
    """Variants a kernel can be written for: the first few by share."""
    target_count: int | None = None
    """How many there are, where that is more."""
    families: list[str] | None = None
    """Shape families that one kernel can serve: the first few by share."""
    not_a_target: str | None = None
    """Why no kernel can be written for any of its variants."""

    @classmethod
    def of(cls, card: Card) -> "CardBrief":
        """The row of a card."""
        return cls(**_card_facts(card))


class CardRow(CardBrief):
    """A card with its totals."""

    total_us: float
    variants: int

    @classmethod
    def of(cls, card: Card) -> "CardRow":
        """The row of a card."""
        exact = sum(v.family is None for v in card.variants)
        return cls(**_card_facts(card), total_us=rounded(card.total_us), variants=exact)


def _card_facts(card: Card) -> dict[str, Any]:
    targets = [v for v in card.variants if v.target]
    exact = [v.id for v in targets if v.family is None]
    families = [v.id for v in targets if v.family is not None]
    dearest = card.variants[0]
    within = list(dict.fromkeys(name for v in card.variants for name in v.within))
    return {
        "id": card.id,
        "kind": "region" if card.is_region else "operator",
        "operator": card.operator,
        "calls": card.calls,
        "share": rounded(card.share),
        "wall_share": None if card.wall_share is None else rounded(card.wall_share),
        "headroom": rounded(card.headroom),
        "gain": rounded(card.gain),
        "model_at_most": rounded(amdahl(model_share(card, card.share), card.headroom)),
        "launches": dearest.launches if card.is_region else None,
        "inside": _inside(dearest) or None,
        "within": shortened_list(within, SHOWN_NAMES) or None,
        "targets": exact[:SHOWN_IDS],
        "target_count": len(exact) if len(exact) > SHOWN_IDS else None,
        "families": families[:SHOWN_IDS] or None,
        "not_a_target": None if targets else dearest.reason,
    }


def by_time(inside: Iterable[Inner]) -> list[Inner]:
    """The operators inside a region, those first that take the most time of it."""
    return sorted(inside, key=lambda inner: -inner.calls * inner.us)


def _inside(variant: Variant) -> list[str]:
    names = [i.operator + (f" x{i.calls}" if i.calls > 1 else "") for i in by_time(variant.inside)]
    return shortened_list(names, SHOWN_NAMES)


class NodeRow(View):
    """A valid candidate, or eager itself at the root of its tree."""

    id: str
    parent_id: str | None = None
    label: str
    author: str
    note: str | None = None
    visits: int
    timing: TimingView | None = None

    @classmethod
    def of(cls, node: Node) -> "NodeRow":
        """The row of a node."""
        return cls(
            id=node.id,
            parent_id=node.parent_id,
            label=node.label,
            author=node.author,
            note=brief(node.note),
            visits=node.visits,
            timing=TimingView.of(node.timing) if node.timing else None,
        )


class AttemptRow(View):
    """A proposal that did not become a node."""

    id: str
    status: str
    reason: str
    error: str | None = None
    """The log line that says most."""
    note: str | None = None

    @classmethod
    def of(cls, attempt: Attempt) -> "AttemptRow":
        """The row of an attempt."""
        return cls(
            id=attempt.id,
            status=attempt.verdict.status,
            reason=brief(attempt.verdict.reason, MAX_REASON_CHARS) or "",
            error=brief(first_error(attempt.verdict.log), MAX_REASON_CHARS),
            note=brief(attempt.note),
        )


class ExplanationRow(View):
    """One status, outcome or rule: what it checks, why, on what evidence, and what satisfies it."""

    name: str
    checks: str
    why: str
    evidence: str
    satisfied_by: str


def explanation_rows(status: str, evidence: Mapping[str, Json]) -> list[ExplanationRow]:
    """The explanations of a verdict or a timing."""
    return [ExplanationRow(**vars(entry)) for entry in explained(status, evidence)]


class VerdictDetail(View):
    """A verdict with the evidence it rests on: draws, rules and ratios, never values."""

    status: str
    reason: str
    log: str | None = None
    evidence: dict[str, Json]
    meaning: dict[str, str] | None = None
    """What the terms in the evidence stand for."""
    explained: list[ExplanationRow]
    """What the status and the rule check, why, and what satisfies them."""

    @classmethod
    def of(cls, verdict: Verdict) -> "VerdictDetail":
        """The detail of a verdict."""
        return cls(
            status=verdict.status,
            reason=verdict.reason,
            log=verdict.log or None,
            evidence=verdict.evidence,
            meaning=meanings(verdict.evidence) or None,
            explained=explanation_rows(verdict.status, verdict.evidence),
        )
