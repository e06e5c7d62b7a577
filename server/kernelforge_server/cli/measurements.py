"""What people read of a measured model."""

from collections.abc import Iterator

from kernelforge_engine import codec
from kernelforge_engine.exchanges import CastSummary
from kernelforge_engine.measurements import Comparison, KernelSaving, Measurement, WholeModel
from kernelforge_server.cli.sheet import Sheet
from kernelforge_server.cli.tables import GOOD, byte_count, interval, microseconds
from kernelforge_tools.wording import (
    FALLBACKS,
    counted,
    drift_words,
    outcome,
    saving_words,
)

LOUD = "bold red"
UNMEASURED = (
    "Not measured: whether the whole model is faster with this cast, and which kernels help it, is "
    "not known. `kernelforge measure MODEL --cast X.cast` tells."
)


def measurement_table(measured: Measurement) -> Sheet:
    """The whole model before and after, a row for every mode."""
    made = Sheet("mode", "outcome", ">original", ">with cast", ">speed-up (99 %)",
                 "-largest difference", "-relative", "-held at most")  # fmt: skip
    for row in measured.rows:
        made.add_row(
            row.mode,
            outcome(row.low, row.high),
            microseconds(row.original_us),
            microseconds(row.patched_us),
            interval(row.speedup, row.low, row.high),
            f"{row.max_abs:.2g}",
            f"{row.max_relative:.2g}",
            f"{_bytes(row.original_bytes)}, {_bytes(row.patched_bytes)}",
            style=GOOD if row.low > 1 else None,
        )
    return made


def measurement_lines(measured: Measurement) -> Iterator[str]:
    """What the table has no room for: failed modes, savings, drift, and why calls stayed eager."""
    yield from (f"{mode} was not measured: {why}." for mode, why in measured.failed.items())
    for row in measured.rows:
        mode = f"{row.mode}: " if len(measured.rows) > 1 else ""
        yield f"{mode}{saving_words(row)}"
        yield from (f"{mode}{line}" for line in drift_words(row))
        yield from (f"{mode}{line}" for line in _calls(row))


def _calls(row: Comparison) -> Iterator[str]:
    yield (
        f"In one run {counted(row.run_hits, 'call')} ran a kernel; over all runs with the cast, "
        f"warm-up included, {row.hits}."
    )
    for operator, reasons in row.fallbacks.items():
        for reason, count in reasons.items():
            why = FALLBACKS.get(reason, reason)
            yield f"Stayed eager: {operator}, {counted(count, 'call')}: {why}."


def kernel_table(kernels: tuple[KernelSaving, ...]) -> Sheet:
    """What each kernel saves of a run."""
    made = Sheet("node", "~operator", ">calls", ">predicted", ">saves", ">from", ">to",
                 "!what that means")  # fmt: skip
    for kernel in kernels:
        made.add_row(
            kernel.node_id,
            kernel.operator,
            str(kernel.run_hits),
            _us(kernel.predicted_us),
            _us(kernel.saving_us),
            _us(kernel.low_us),
            _us(kernel.high_us),
            _meaning(kernel),
            style=LOUD if kernel.slows else GOOD if (kernel.low_us or 0) > 0 else None,
        )
    return made


def _meaning(kernel: KernelSaving) -> str:
    if kernel.unmeasured:
        return f"not measured: {kernel.unmeasured}"
    if kernel.slows:
        return "the model is slower with it"
    return "the model is faster with it" if (kernel.low_us or 0) > 0 else "no clear difference"


def whole_model_lines(cast: CastSummary) -> Iterator[tuple[str, str | None]]:
    """What a cast says about the whole model, each line with how loud it is said."""
    whole = cast.whole_model
    if whole is None:
        yield UNMEASURED, LOUD
        return
    for node, why in whole.slowing.items():
        yield f"KEPT ALTHOUGH THE MODEL IS SLOWER WITH IT: {node}, {why}.", LOUD
    yield _whole(whole), LOUD if whole.high is not None and whole.high < 1 else None
    for node, why in whole.dropped.items():
        yield f"Left out, since the model is slower with it: {node}, {why}.", None
    for node, why in whole.unknown.items():
        yield f"Kept, and not measured in the model: {node}: {why}.", None


def _whole(whole: WholeModel) -> str:
    if whole.speedup is None:
        return f"The whole model was not compared: {whole.uncompared}."
    return (
        f"The captured model: {microseconds(whole.original_us)} without and "
        f"{microseconds(whole.patched_us)} with the cast, "
        f"{interval(whole.speedup, whole.low, whole.high)}."
    )


def measurement_document(measured: Measurement) -> dict[str, object]:
    """A measurement with its verdicts in a word, as JSON values."""
    document: dict[str, object] = codec.dump(measured)
    rows = [{**codec.dump(row), "outcome": outcome(row.low, row.high)} for row in measured.rows]
    kernels = [{**codec.dump(kernel), "slows": kernel.slows} for kernel in measured.kernels]
    return {**document, "rows": rows, "kernels": kernels}


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} us"


def _bytes(size: int | None) -> str:
    return "-" if size is None else byte_count(size)
