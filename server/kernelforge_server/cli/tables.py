"""The tables that people read."""

from kernelforge_engine.exchanges import CastSummary, OptimizeReport, OptimizeRow
from kernelforge_engine.records import Outcome
from kernelforge_server.cli.sheet import Sheet
from kernelforge_tools.wording import counted

GOOD, WARNED = "green", "yellow"
MENTIONED_SHARE = 0.01


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


def byte_count(size: int) -> str:
    """A size as people read it."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f} {unit}"
    return f"{size} B"


def report_table(report: OptimizeReport) -> Sheet:
    """The best of every variant that was tried or takes time worth mentioning."""
    shown = [r for r in report.rows if _mentioned(r)]
    made = Sheet("variant", "~operator", "<call", ">calls", ">share", ">eager", ">kernel",
                 ">speed-up (99 %)", "~outcome", "-label")  # fmt: skip
    for row in shown:
        made.add_row(
            row.variant_id,
            row.operator,
            row.variant,
            str(row.calls),
            f"{row.share:.1%}",
            microseconds(row.eager_us),
            microseconds(row.candidate_us),
            interval(row.speedup, row.low, row.high),
            row.outcome or "eager",
            row.label or "-",
            style=GOOD if row.outcome == Outcome.FASTER else None,
        )
    return made


def left_line(report: OptimizeReport) -> str | None:
    """What the table of a report leaves out."""
    left = sum(1 for r in report.rows if not _mentioned(r))
    if not left:
        return None
    return f"Not shown: {counted(left, 'variant')} without a kernel, below {MENTIONED_SHARE:.0%}."


def _mentioned(row: OptimizeRow) -> bool:
    return row.node_id is not None or row.share >= MENTIONED_SHARE


def cast_table(cast: CastSummary) -> Sheet:
    """What a cast holds."""
    made = Sheet("node", "~operator", "<call", ">share", ">eager", ">kernel",
                 ">speed-up (99 %)", "-label")  # fmt: skip
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


def load_text(cast: CastSummary) -> str:
    """The code that loads a cast, every comment on a line of its own, ready to be copied."""
    lines = []
    for line in cast.load.splitlines():
        code, mark, comment = line.partition("  # ")
        lines += [f"# {part}" for part in comment.split("; ")] if mark else []
        lines.append(code)
    return "\n".join(lines)
