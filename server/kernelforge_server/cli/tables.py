"""The tables that people read."""

from collections.abc import Iterable

from rich.table import Table

from kernelforge_engine.exchanges import CastSummary, Measurement, OptimizeReport
from kernelforge_engine.launch.describe import tensor_text
from kernelforge_engine.records import Card, Outcome

GOOD = "green"
CUT_COLUMNS = 56
MENTIONED_SHARE = 0.01


def table(*columns: str) -> Table:
    """A table without a frame; `>name` is aligned to the right, `<name` is cut when too long."""
    made = Table(box=None, pad_edge=False)
    for column in columns:
        right, cut = column.startswith(">"), column.startswith("<")
        made.add_column(
            column.lstrip("<>"),
            justify="right" if right else "left",
            no_wrap=right or cut,
            header_style="dim",
            overflow="ellipsis" if cut else "fold",
            max_width=CUT_COLUMNS if cut else None,
        )
    return made


def microseconds(value: float | None) -> str:
    """A time as people read it."""
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value / 1000:.2f} ms"
    return f"{value:.1f} us"


def interval(speedup: float | None, low: float | None, high: float | None) -> str:
    """A speed-up with its interval."""
    if speedup is None or low is None or high is None:
        return "-"
    return f"{speedup:.2f}x ({low:.2f} to {high:.2f})"


def cards_table(cards: Iterable[Card]) -> Table:
    """Operators by share, each with its variants."""
    made = table("card", "operator", "variant", "<inputs", ">calls", ">eager", ">share",
                 ">head-room", "target")  # fmt: skip
    for card in cards:
        for variant in card.variants:
            made.add_row(
                card.id,
                card.operator,
                variant.id,
                " ".join(tensor_text(spec) for spec in variant.call.inputs),
                str(variant.calls),
                microseconds(variant.eager_us),
                f"{variant.share:.1%}",
                f"{variant.headroom:.1f}x",
                "yes" if variant.target else f"no: {variant.reason}",
                style=None if variant.target else "dim",
            )
    return made


def report_table(report: OptimizeReport) -> Table:
    """The best of every variant that was tried or takes time worth mentioning."""
    shown = [r for r in report.rows if r.node_id or r.share >= MENTIONED_SHARE]
    made = table("operator", "<variant", ">calls", ">share", ">eager", ">kernel",
                 ">speed-up (99 %)", "outcome", "label")  # fmt: skip
    for row in shown:
        made.add_row(
            row.operator,
            f"{row.variant_id} {row.variant}",
            str(row.calls),
            f"{row.share:.1%}",
            microseconds(row.eager_us),
            microseconds(row.candidate_us),
            interval(row.speedup, row.low, row.high),
            row.outcome or "eager",
            row.label or "-",
            style=GOOD if row.outcome == Outcome.FASTER else None,
        )
    if left := len(report.rows) - len(shown):
        made.add_row("...", f"{left} more variants, each below {MENTIONED_SHARE:.0%}", style="dim")
    return made


def measurement_table(measured: Measurement) -> Table:
    """The whole model before and after."""
    made = table("whole model", ">original", ">with cast", ">speed-up (99 %)",
                 ">largest difference", ">relative", ">kernel calls")  # fmt: skip
    made.add_row(
        "latency",
        microseconds(measured.original_us),
        microseconds(measured.patched_us),
        interval(measured.speedup, measured.low, measured.high),
        f"{measured.max_abs:.2g}",
        f"{measured.max_relative:.2g}",
        str(measured.hits),
    )
    return made


def cast_table(cast: CastSummary) -> Table:
    """What a cast holds."""
    made = table("node", "operator", "<variant", ">share", ">eager", ">kernel",
                 ">speed-up (99 %)", "label")  # fmt: skip
    for entry in cast.entries:
        made.add_row(
            entry.node_id,
            entry.operator,
            entry.variant,
            f"{entry.share:.1%}",
            microseconds(entry.eager_us),
            microseconds(entry.candidate_us),
            interval(entry.speedup, entry.low, entry.high),
            entry.label,
        )
    return made
