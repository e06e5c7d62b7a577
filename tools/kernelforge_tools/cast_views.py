"""Casts as an agent sees them."""

from kernelforge_engine import codec
from kernelforge_engine.calls import Json
from kernelforge_engine.exchanges import CastEntrySummary, CastSummary
from kernelforge_tools.answer import View
from kernelforge_tools.views import TimingView
from kernelforge_tools.wording import rounded


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
    whole_model: dict[str, Json] | None = None

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
            whole_model=codec.dump(cast.whole_model) if cast.whole_model else None,
        )
