"""A cast on disk as people and agents read it."""

from pathlib import Path
from typing import Any

from kernelforge_engine.cast.manifest import CastFile, Entry, read
from kernelforge_engine.exchanges import CastEntrySummary, CastSummary
from kernelforge_engine.launch.describe import variant_text
from kernelforge_engine.records import Timing

FIGURES = ("outcome", "eager_us", "candidate_us", "speedup", "low", "high")
LOAD = """from kernelforge_engine import cast
kernels = cast.load({path!r})
kernels.enable(model)  # kernels.counters() tells hits and fallbacks; kernels.disable() restores"""


def summarize(path: Path) -> CastSummary:
    """Read a cast, checking its structure and every hash.

    Raises:
        CastRejected: with what is wrong and what to do about it.
    """
    return summarized(read(path))


def summarized(file: CastFile) -> CastSummary:
    """A cast that was read, in short."""
    return CastSummary(
        path=str(file.path),
        sha256=file.sha256,
        bytes=file.bytes,
        format_version=file.header.version,
        device_name=file.header.device_name,
        torch_version=file.header.torch,
        archs=tuple(sorted({b.arch for e in file.entries for b in e.binaries})),
        entries=tuple(_entry(entry) for entry in file.entries),
        load=LOAD.format(path=str(file.path)),
        whole_model=file.header.whole_model,
    )


def printable(text: str) -> str:
    """A text of a cast as it may go to a terminal: control characters are shown, not sent."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def figures(timing: Timing | None) -> dict[str, Any]:
    """The numbers of a timing by name, each None where there was none."""
    return {name: getattr(timing, name, None) for name in FIGURES}


def _entry(entry: Entry) -> CastEntrySummary:
    return CastEntrySummary(
        node_id=entry.node_id,
        operator=entry.call.name,
        variant=printable(variant_text(entry.call)),
        calls=entry.calls,
        share=entry.share,
        label=entry.label,
        **figures(entry.timing),
    )
