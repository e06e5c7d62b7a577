"""What whole models were measured to do, as a section of the report."""

from collections.abc import Callable, Iterator, Sequence

from kernelforge_engine.measurements import Comparison, KernelSaving, Measured
from kernelforge_engine.reporting import ProjectReport
from kernelforge_server.report import figures
from kernelforge_server.report.sheets import Bar, Cell, Section, Table, Tone, cells, columns
from kernelforge_server.report.targets import short
from kernelforge_tools.wording import counted, drift_words, outcome, saving_words

MOST_MEASURED = 8
TONES: dict[str, Tone] = {"faster": "good", "slower": "bad"}


def model_section(found: ProjectReport, redact: Callable[[str], str]) -> Section:
    """Every measurement in a row for each mode, the newest one in full."""
    heading = "The whole model"
    if not found.measured:
        text = (
            "No whole model was measured with a cast of this project yet, so nothing is claimed of "
            "it. kernelforge export and kernelforge measure do that."
        )
        return Section(name="model", heading=heading, texts=(text,))
    newest = next((m for m in found.measured if m.measurement.rows), found.measured[0])
    shown = found.measured[:MOST_MEASURED]
    rows = tuple(row for one in shown for row in _rows(one, redact))
    left = len(found.measured) - len(shown)
    table = Table(
        caption="As measured, newest first",
        columns=columns(
            "How it was run", "When", ">Original", ">With cast", ">Speed-up (99 %)", "Outcome",
            ">Predicted", ">Saved",
        ),
        rows=rows,
        left=figures.more(left, "older measurement"),
    )  # fmt: skip
    kernels = [_kernels(newest.measurement.kernels)] if newest.measurement.kernels else []
    return Section(
        name="model",
        heading=heading,
        texts=tuple(redact(text) for text in _texts(newest)),
        bars=tuple(_bars(newest.measurement.rows)),
        tables=(table, *kernels),
    )


def _rows(one: Measured, redact: Callable[[str], str]) -> Iterator[tuple[Cell, ...]]:
    how = redact(f"{one.task} of {short(one.model)} on {one.device}")
    with_cast = one.cast_sha256[:12] if one.cast_sha256 else "none written: slower"
    when = Cell(text=figures.when(one.at), more=(f"cast {with_cast}",), tone="quiet")
    for row in one.measurement.rows:
        said = outcome(row.low, row.high)
        saved, tone = row.saving, TONES.get(said, "")
        interval = f"{figures.times(row.speedup)} ({figures.bounds(row.low, row.high)})"
        yield (
            Cell(text=row.mode, more=(how,)),
            when,
            *cells(figures.time(row.original_us), figures.time(row.patched_us)),
            Cell(text=interval, tone=tone),
            Cell(text=said, tone=tone),
            Cell(text=figures.time(saved.predicted_us)),
            Cell(
                text=figures.time(saved.measured_us),
                more=(f"{figures.time(saved.low_us)} to {figures.time(saved.high_us)}",),
            ),
        )
    for mode, why in one.measurement.failed.items():
        more = (redact(why),)
        nothing = cells(*[figures.NONE] * 3)
        yield (
            Cell(text=mode, more=(how,)),
            when,
            *nothing,
            Cell(text="not measured", more=more),
            *nothing[1:],
        )


def _bars(rows: Sequence[Comparison]) -> Iterator[Bar]:
    longest = max((max(r.original_us, r.patched_us) for r in rows), default=1.0)
    for row in rows:
        tone = TONES.get(outcome(row.low, row.high), "")
        sides = ((row.mode, row.original_us), (f"{row.mode}, with cast", row.patched_us))
        for (name, us), shade in zip(sides, ("quiet", tone), strict=True):
            yield Bar(name=name, text=figures.time(us), part=us / longest, tone=shade)


def _texts(newest: Measured) -> Iterator[str]:
    """The first mode in words; of the others only what is odd, since a table has the figures."""
    for row in newest.measurement.rows[:1]:
        yield f"{row.mode}: {saving_words(row)}"
        yield from drift_words(row)
        yield (
            f"The largest difference of two outputs is {row.max_abs:.2g}, {row.max_relative:.2g} "
            f"of the root mean square of the original output; {counted(row.run_hits, 'call')} of "
            "a run took a kernel."
        )
    for row in newest.measurement.rows[1:]:
        if row.saving.flag:
            yield f"{row.mode}: what the model saved is {row.saving.flag}."
    if newest.measurement.dropped:
        names = ", ".join(newest.measurement.dropped)
        yield f"Left out of the cast, since the model is slower with it: {names}."


def _kernels(kernels: Sequence[KernelSaving]) -> Table:
    return Table(
        caption="What each kernel saves of a run (the time without it, less the time with all)",
        columns=columns(
            "Kernel", "Operator", ">Calls", ">Predicted", ">Saves", ">From", ">To", "Meaning"
        ),
        rows=tuple(_kernel(kernel) for kernel in kernels),
    )


def _kernel(kernel: KernelSaving) -> tuple[Cell, ...]:
    words, tone = _meaning(kernel)
    return (
        *cells(kernel.node_id, kernel.operator, str(kernel.run_hits)),
        *cells(*map(figures.time, (kernel.predicted_us, kernel.saving_us))),
        *cells(*map(figures.time, (kernel.low_us, kernel.high_us))),
        Cell(text=words, tone=tone),
    )


def _meaning(kernel: KernelSaving) -> tuple[str, Tone]:
    if kernel.unmeasured:
        return f"not measured: {kernel.unmeasured}", ""
    if kernel.slows:
        return "the model is slower with it", "bad"
    if (kernel.low_us or 0) > 0:
        return "the model is faster with it", "good"
    return "no clear difference", ""
