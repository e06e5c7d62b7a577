"""What a cast's kernels came to where they were made, and here."""

from collections.abc import Iterator, Sequence

from kernelforge_engine.cast.summary import printable
from kernelforge_engine.records import Outcome
from kernelforge_engine.rerun import Rerun
from kernelforge_server.cli.sheet import Sheet
from kernelforge_server.cli.tables import GOOD, interval
from kernelforge_tools.wording import counted


def rerun_sheet(rows: Sequence[Rerun]) -> Sheet:
    """A row for every entry that was run again."""
    made = Sheet("node", "~operator", "<call", "holds", ">speed-up then", ">speed-up here (99 %)",
                 "!found here")  # fmt: skip
    for row in rows:
        then, now = row.then, row.now
        made.add_row(
            row.node_id,
            row.operator,
            printable(row.variant),
            "yes" if row.holds else "no",
            f"{then.speedup:.2f}x" if then else "-",
            interval(now.speedup, now.low, now.high) if now else "-",
            _found_here(row),
            style=GOOD if row.holds else None,
        )
    return made


def remarks(rows: Sequence[Rerun]) -> Iterator[str]:
    """What a reader should know of how they were run."""
    made_up = sum(row.inputs == "normal" and row.verdict is not None for row in rows)
    if made_up:
        yield (
            f"{counted(made_up, 'kernel')} ran on normal values: the cast carries none of the "
            "captured inputs, so nothing is said about values like the model's."
        )
    if any(row.now is not None and row.now.outcome == Outcome.INCONCLUSIVE for row in rows):
        yield "What is inconclusive may be decided on an idle machine: run it again there."


def _found_here(row: Rerun) -> str:
    if row.verdict is None:
        return row.why
    if row.now is None:
        return f"{row.verdict.status}: {row.why or row.verdict.reason}"
    return f"{row.verdict.status}, {row.now.outcome}"
