"""`kernelforge cast diff`: what tells two casts apart."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.cast.compare import Changed, Difference, Kernel, compare
from kernelforge_engine.cast.manifest import read
from kernelforge_engine.cast.summary import printable
from kernelforge_server.cli.cast_options import existing, performed
from kernelforge_server.cli.options import CastArgument, JsonOption
from kernelforge_server.cli.session import Session

INDENT = "  "


def diff(
    first: CastArgument,
    second: CastArgument,
    sources: Annotated[
        bool, typer.Option("--sources", metavar="", help="Also show the lines that differ.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare two casts, call by call: exit code 0 when they hold the same, 1 when not."""
    session = Session(project=None, as_json=as_json)
    found = performed(session, lambda: compare(read(existing(first)), read(existing(second))))
    if as_json:
        session.emit({**codec.dump(found), "equal": found.equal})
    else:
        session.show("\n".join(_lines(found, first, second, sources)))
    raise typer.Exit(0 if found.equal else 1)


def _lines(found: Difference, first: Path, second: Path, sources: bool) -> Iterator[str]:
    if found.equal:
        same = "are the same, byte for byte" if found.same_bytes else "hold the same"
        yield f"{first} and {second} {same}."
    for name, values in found.header.items():
        yield f"{name}: {values[0] or '-'} -> {values[1] or '-'}"
    for path, kernels in ((first, found.only_first), (second, found.only_second)):
        if kernels:
            yield f"Only in {path}:"
        yield from (f"{INDENT}{_kernel(kernel)}" for kernel in kernels)
    if found.changed:
        yield "In both, but not the same:"
    for changed in found.changed:
        yield f"{INDENT}{_changed(changed)}"
        if sources:
            yield from (
                f"{INDENT * 2}{printable(line.expandtabs())}" for line in changed.source_diff
            )


def _kernel(kernel: Kernel) -> str:
    return f"{kernel.operator} ({printable(kernel.variant)}), node {kernel.node_id}"


def _changed(changed: Changed) -> str:
    parts = [_part(changed, name) for name in changed.differs]
    return f"{changed.operator} ({printable(changed.variant)}): {', '.join(parts)}"


def _part(changed: Changed, name: str) -> str:
    if name == "source":
        added = sum(line.startswith("+") for line in changed.source_diff)
        removed = sum(line.startswith("-") for line in changed.source_diff)
        return f"source (-{removed} +{added} lines)"
    if name == "timing":
        one, other = (f"{s:.2f}x" if s is not None else "none" for s in changed.speedups)
        return f"timing ({one} -> {other})"
    if name == "binaries":
        one, other = (" ".join(archs) or "none" for archs in changed.archs)
        return f"binaries ({one} -> {other})"
    if name == "node":
        return "node ({} -> {})".format(*changed.node_ids)
    return name
