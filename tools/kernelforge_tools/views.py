"""Records as an agent and a reader of `--json` see them: rounded, in words, without bulk."""

from kernelforge_engine.calls import Json
from kernelforge_engine.exchanges import Attempt, CastEntrySummary, CastSummary
from kernelforge_engine.launch.describe import tensor_text
from kernelforge_engine.records import Card, Node, Timing, Variant, Verdict
from kernelforge_tools.answer import View
from kernelforge_tools.tensors import plain_arguments
from kernelforge_tools.wording import first_error, meanings


def rounded(value: float) -> float:
    """A measurement with the four digits it is good for."""
    return float(f"{value:.4g}")


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
            arguments=plain_arguments(call),
            calls=variant.calls,
            eager_us=rounded(variant.eager_us),
            floor_us=rounded(variant.floor_us),
            share=rounded(variant.share),
            headroom=rounded(variant.headroom),
            module=variant.module or None,
            not_a_target=None if variant.target else variant.reason or "not measured as one",
        )


class CardRow(View):
    """One operator of a capture; share is its part of the time all operators took."""

    id: str
    operator: str
    calls: int
    total_us: float
    share: float
    headroom: float
    variants: int
    targets: list[str]
    """Variants a kernel can be written for, by share."""

    @classmethod
    def of(cls, card: Card) -> "CardRow":
        """The row of a card."""
        return cls(
            id=card.id,
            operator=card.operator,
            calls=card.calls,
            total_us=rounded(card.total_us),
            share=rounded(card.share),
            headroom=rounded(card.headroom),
            variants=len(card.variants),
            targets=[v.id for v in card.variants if v.target],
        )


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
            note=node.note or None,
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
            reason=attempt.verdict.reason,
            error=first_error(attempt.verdict.log),
            note=attempt.note or None,
        )


class VerdictDetail(View):
    """A verdict with the evidence it rests on: draws, rules and ratios, never values."""

    status: str
    reason: str
    log: str | None = None
    evidence: dict[str, Json]
    meaning: dict[str, str] | None = None
    """What the terms in the evidence stand for."""

    @classmethod
    def of(cls, verdict: Verdict) -> "VerdictDetail":
        """The detail of a verdict."""
        return cls(
            status=verdict.status,
            reason=verdict.reason,
            log=verdict.log or None,
            evidence=verdict.evidence,
            meaning=meanings(verdict.evidence) or None,
        )


class CastEntryRow(View):
    """One kernel of a cast."""

    node_id: str
    operator: str
    variant: str
    calls: int
    share: float
    label: str
    timing: TimingView

    @classmethod
    def of(cls, entry: CastEntrySummary) -> "CastEntryRow":
        """The row of an entry."""
        return cls(
            node_id=entry.node_id,
            operator=entry.operator,
            variant=entry.variant,
            calls=entry.calls,
            share=rounded(entry.share),
            label=entry.label,
            timing=TimingView.of(entry),
        )


class CastView(View):
    """A cast on disk and how to load it."""

    path: str
    sha256: str
    bytes: int
    archs: list[str]
    entries: list[CastEntryRow]
    load: str

    @classmethod
    def of(cls, cast: CastSummary) -> "CastView":
        """The view of a summary."""
        return cls(
            path=cast.path,
            sha256=cast.sha256,
            bytes=cast.bytes,
            archs=list(cast.archs),
            entries=[CastEntryRow.of(entry) for entry in cast.entries],
            load=cast.load,
        )
