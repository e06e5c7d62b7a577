"""A cast as a person reads it: where it comes from, and what each of its kernels is worth."""

from collections.abc import Iterator
from datetime import UTC, datetime

from kernelforge_engine.cast.report import CastReport, Found, KernelReport, SizeReport
from kernelforge_engine.cast.summary import printable
from kernelforge_server.cli.sheet import Sheet
from kernelforge_server.cli.tables import byte_count, interval, microseconds
from kernelforge_tools.wording import counted

MOST_SIZES = 8
INDENT = "  "
MADE = {"export": "exported", "merge": "merged", "adapt": "adapted"}
SIGNATURES = {
    "unsigned": "none: nothing tells who made it",
    "signed": "by {key}; `--key` tells whether you trust it",
    "unchecked": "by {key}, not checked: that needs pip install 'kernelforge-mcp[sign]'",
}


def heading(cast: CastReport) -> str:
    """What it holds, in a line."""
    share = sum(kernel.share for kernel in cast.kernels)
    calls = counted(sum(len(kernel.sizes) for kernel in cast.kernels), "call")
    several = cast.made_by == "merge"  # shares of other captures are of other times
    took = "" if several else f", which took {share:.1%} of the time of what was captured"
    return f"{cast.path}: {counted(len(cast.kernels), 'kernel')} for {calls}{took}."


def facts(cast: CastReport, *, trusted: bool) -> Iterator[str]:
    """Where it comes from and what it needs, a line each; `trusted`: its key was asked for."""
    when = datetime.fromtimestamp(cast.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    made = f"{when}, {MADE[cast.made_by]} by Kernel Forge {cast.kernelforge}"
    others = [digest[:12] for digest in cast.made_from]
    lines = {
        "made": f"{made} from {', '.join(others)}" if others else made,
        "judged on": f"{cast.device_name}, torch {cast.torch_version}",
        "runs on": "; ".join(dict.fromkeys(map(_runs_on, cast.kernels))) or "nothing",
        "whole model": _whole_model(cast),
        "signature": signature(cast, trusted=trusted),
        "inputs": values(cast),
        "model code": _texts(cast),
        "file": f"{byte_count(cast.bytes)}, format {cast.format_version}, sha256 {cast.sha256}",
    }
    width = max(map(len, lines))
    for name, text in ((name, text) for name, text in lines.items() if text):
        yield f"{INDENT}{name.ljust(width)}  {text}"


def _whole_model(cast: CastReport) -> str:
    """What its exporter measured, where that was done; what it kept against that comes first."""
    found = cast.whole_model
    if found is None:
        return ""
    slowing = ", ".join(found.slowing)
    loud = f"SLOWER WITH {slowing}, which was kept all the same; " if slowing else ""
    if found.speedup is None:
        return f"{loud}not compared: {found.uncompared}"
    figures = interval(found.speedup, found.low, found.high)
    return f"{loud}{figures} where it was exported, with these kernels"


def signature(cast: CastReport, *, trusted: bool) -> str:
    """By whom it is signed."""
    if trusted:
        return f"by {cast.signed_by}, a key that was named"
    return SIGNATURES[cast.signature].format(key=cast.signed_by)


def values(cast: CastReport) -> str:
    """Whether the cast carries data of the model."""
    sampled = sum(kernel.sampled for kernel in cast.kernels)
    whole = sum(kernel.whole for kernel in cast.kernels)
    if not sampled + whole:
        return "no values of them are inside"
    parts = [f"up to 256 values of {counted(sampled, 'tensor')}"] if sampled else []
    parts += [f"all values of {counted(whole, 'small one' if sampled else 'small tensor')}"] * (
        whole > 0
    )
    return f"{' and '.join(parts)} are inside; `export --no-samples` leaves them out"


def _texts(cast: CastReport) -> str:
    owners = sorted({owner for kernel in cast.kernels for owner in kernel.owners})
    return f"the text of {', '.join(map(printable, owners))} is inside too" if owners else ""


def _runs_on(kernel: KernelReport) -> str:
    if kernel.backend == "cpu":
        return "any CPU, compiled from source when it is loaded"
    return f"NVIDIA GPUs of {' and '.join(kernel.archs)}" if kernel.archs else "no GPU as it is"


def kernels_sheet(cast: CastReport) -> Sheet:
    """A row for every kernel; below it one for every size or machine, where there are several."""
    made = Sheet(">#", "node", "~operator", "~call", "-calls", ">share", ">eager", ">kernel",
                 ">speed-up (99 %)", "-judged", "-label")  # fmt: skip
    for kernel in cast.kernels:
        first = kernel.sizes[0]
        found = [f for size in kernel.sizes for f in size.found]
        timed = [f for f in found if f.speedup is not None]
        only = found[0] if len(found) == 1 else None
        made.add_row(
            str(kernel.number),
            first.node_id,
            kernel.operator,
            kernel.variant,
            str(kernel.calls),
            f"{kernel.share:.1%}",
            microseconds(only.eager_us) if only else "",
            microseconds(only.candidate_us) if only else "",
            _speedup(only) if only else _range(timed),
            found[0].tier,
            kernel.label,
        )
        if only is None:
            _add_sizes(made, kernel)
    return made


def _add_sizes(made: Sheet, kernel: KernelReport) -> None:
    for size in kernel.sizes[:MOST_SIZES]:
        for found in size.found:
            made.add_row("", "", "", _where(kernel, size, found), str(size.calls),
                         f"{size.share:.1%}", microseconds(found.eager_us),
                         microseconds(found.candidate_us), _speedup(found), found.tier, "",
                         style="dim")  # fmt: skip
    left = len(kernel.sizes) - MOST_SIZES
    if left > 0:
        rest = f"{INDENT}and {counted(left, 'size')} more"
        made.add_row("", "", "", rest, *[""] * 7, style="dim")


def _where(kernel: KernelReport, size: SizeReport, found: Found) -> str:
    """What tells a row from its neighbours: the size, the machine, or both."""
    machine = f"on {found.device_name}" + (f" ({found.arch})" if kernel.archs else "")
    if len(kernel.sizes) == 1:
        return INDENT + machine
    return INDENT + (size.variant if len(size.found) == 1 else f"{size.variant} {machine}")


def _speedup(found: Found) -> str:
    if found.speedup is None:
        return "as its neighbours"
    return interval(found.speedup, found.low, found.high)


def _range(timed: list[Found]) -> str:
    speedups = [f.speedup for f in timed if f.speedup is not None]
    if not speedups:
        return "-"
    least, most = f"{min(speedups):.2f}x", f"{max(speedups):.2f}x"
    return least if least == most else f"{least} to {most}"
