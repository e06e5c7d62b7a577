"""The tool that measures a whole model with and without a cast."""

from typing import Any

from mcp.server.mcpserver import Context

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import MeasureRequest, Notice
from kernelforge_engine.measurements import Comparison, KernelSaving, Measurement, Mode
from kernelforge_engine.model_checks import request_of
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.entries import absolute, mode_names
from kernelforge_tools.waiting import DEFAULT_WAIT_S, Wait, slow
from kernelforge_tools.wording import FALLBACKS, counted, number_text, outcome, rounded

SHOWN = 16
WIDE = 1.1  # high over low


class MeasurementView(View):
    """Rows by mode, and kernels."""

    rows: list[dict[str, Any]]
    failed: dict[str, str]
    kernels: list[dict[str, Any]]
    left_out: str | None = None
    meaning: dict[str, str] | None = None
    """What the reasons of fallbacks stand for."""


async def measure_model(
    ctx: Context[Engine],
    path: str,
    capture_id: str | None = None,
    modes: tuple[Mode, ...] = ("eager",),
    attribution: bool = False,
    wait_s: Wait = DEFAULT_WAIT_S,
) -> Answer[MeasurementView]:
    """Time a captured model (default: the newest) with and without a cast: speedup (the median of
    interleaved pairs), output drift, predicted and measured saving, peak memory. attribution: also
    what each kernel saves."""
    chosen = mode_names(modes)
    cast = absolute(path)

    async def work(engine: Engine, notice: Notice) -> Answer[MeasurementView]:
        capture = await engine.capture_of(capture_id)
        request = MeasureRequest(
            **vars(request_of(capture)), cast=cast, modes=chosen, attribution=attribution
        )
        return measured_answer(await engine.measure(request, notice), str(cast))

    arguments = {
        "path": str(cast),
        "capture_id": capture_id,
        "modes": list(chosen),
        "attribution": attribution,
    }
    return await slow(ctx, "measure_model", arguments, wait_s, work)


def measured_answer(measured: Measurement, path: str) -> Answer[MeasurementView]:
    """The answer for a model that has just been measured, under the first mode's outcome."""
    first = next(iter(measured.rows), None)
    kernels = sorted(measured.kernels, key=_worth)[:SHOWN]
    slowing = [kernel.node_id for kernel in measured.kernels if kernel.slows]
    said = [_sentence(row) for row in measured.rows]
    reasons = {r for row in measured.rows for found in row.fallbacks.values() for r in found}
    said += [f"{mode} failed: {why}." for mode, why in measured.failed.items()]
    said += [f"The model is slower with {', '.join(slowing)}."] if slowing else []
    return Answer(
        status=outcome(first.low, first.high) if first else "failed",
        summary=" ".join(said),
        data=MeasurementView(
            rows=[_short(row) for row in measured.rows],
            failed=measured.failed,
            kernels=[_short(kernel) for kernel in kernels],
            left_out=_left_out(len(kernels), len(measured.kernels)),
            meaning={reason: FALLBACKS[reason] for reason in sorted(reasons) if reason in FALLBACKS}
            or None,
        ),
        next=_next(first, slowing, path),
    )


def _next(first: Comparison | None, slowing: list[str], path: str) -> list[str]:
    """What is worth doing then: an interval this wide says that other work got in the way."""
    if slowing:
        return [call("get_node", node_id=slowing[0])]
    unclear = first is not None and first.low <= 1 <= first.high and first.high > WIDE * first.low
    return (
        [call("measure_model", path=path), call("list_cards")] if unclear else [call("list_cards")]
    )


def _worth(kernel: KernelSaving) -> tuple[bool, float]:
    """Those that slow the model first, then those that save most."""
    return not kernel.slows, -(kernel.saving_us or 0.0)


def _left_out(shown: int, total: int) -> str | None:
    slow_first = "those that slow the model, then those that save most"
    return f"showing {shown} of {total}: {slow_first}" if shown < total else None


def _sentence(row: Comparison) -> str:
    saved, flag = row.saving, f", {row.saving.flag}" if row.saving.flag else ""
    return (
        f"{row.mode}: {outcome(row.low, row.high)}, {rounded(row.speedup)}x ({rounded(row.low)} to "
        f"{rounded(row.high)}), {counted(row.run_hits, 'call')} served a run, saved "
        f"{number_text(saved.measured_us)} us of {number_text(saved.predicted_us)} predicted{flag}."
    )


def _short(record: Comparison | KernelSaving) -> dict[str, Any]:
    """A record with the digits that measurements are good for, absent facts left out."""
    short: dict[str, Any] = _rounded(codec.dump(record))
    return short


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items() if v is not None and v != {}}
    return rounded(value) if isinstance(value, float) else value
