"""The user's library as people and programs read it; what others wrote goes to no terminal raw."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from kernelforge_engine.cast.summary import figures, printable
from kernelforge_engine.launch.describe import variant_text
from kernelforge_engine.library.accepted import Accepted
from kernelforge_engine.library.folder import SHOWN
from kernelforge_server.cli.sheet import Sheet
from kernelforge_server.cli.tables import interval, microseconds


def library_sheet(kernels: Sequence[Accepted]) -> Sheet:
    """A row for every kernel."""
    made = Sheet("id", "~operator", "<call", ">speed-up (99 %)", "-tier", "~judged on", "-torch",
                 "~project", "-node", "-accepted")  # fmt: skip
    for kernel in kernels:
        timing = kernel.timing
        made.add_row(
            kernel.id[:SHOWN],
            printable(kernel.call.name),
            printable(_call(kernel)),
            interval(timing.speedup, timing.low, timing.high),
            printable(kernel.tier),
            printable(kernel.machine.device_name),
            printable(kernel.machine.torch),
            printable(kernel.project),
            printable(kernel.node_id),
            _day(kernel),
        )
    return made


def described(kernel: Accepted) -> Iterator[str]:
    """One kernel in full, its source last."""
    timing, machine = kernel.timing, kernel.machine
    lines = {
        "kernel": kernel.id,
        "operator": f"{kernel.call.name} on {kernel.backend}",
        "judged for": _call(kernel),
        "found": f"{interval(timing.speedup, timing.low, timing.high)}, "
        f"{microseconds(timing.candidate_us)} against {microseconds(timing.eager_us)}",
        "verdict": f"{kernel.verdict.status}, {kernel.tier} tier: {kernel.verdict.reason}",
        "machine": f"{machine.device_name} ({machine.arch}), torch {machine.torch}, "
        f"Kernel Forge {machine.kernelforge}",
        "from": f"{kernel.node_id} of {kernel.project} by {kernel.author}, {_day(kernel)}",
        "idea": kernel.note,
    }
    width = max(map(len, lines))
    yield from (f"{name.ljust(width)}  {printable(text)}" for name, text in lines.items() if text)
    yield ""
    source = kernel.text.expandtabs().removesuffix("\n")
    yield from (printable(line) for line in source.split("\n"))


def document(kernel: Accepted) -> dict[str, object]:
    """One kernel as a program reads it, without its source."""
    return {
        "id": kernel.id,
        "operator": kernel.call.name,
        "backend": kernel.backend,
        "call": variant_text(kernel.call),
        "sizes": kernel.sizes,
        **figures(kernel.timing),
        "tier": kernel.tier,
        "device_name": kernel.machine.device_name,
        "arch": kernel.machine.arch,
        "torch": kernel.machine.torch,
        "project": kernel.project,
        "node_id": kernel.node_id,
        "author": kernel.author,
        "note": kernel.note,
        "accepted_at": kernel.accepted_at,
    }


def _call(kernel: Accepted) -> str:
    more = f" and {kernel.sizes - 1} other sizes" if kernel.sizes > 1 else ""
    return variant_text(kernel.call) + more


def _day(kernel: Accepted) -> str:
    return datetime.fromtimestamp(kernel.accepted_at, UTC).date().isoformat()
