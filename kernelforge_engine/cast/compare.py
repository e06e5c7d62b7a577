"""What tells two casts apart."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from kernelforge_engine import codec
from kernelforge_engine.cast.contents import CastFile, Entry
from kernelforge_engine.launch.describe import variant_text

UNSIGNED = "unsigned"


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel that is in one of two casts only."""

    operator: str
    variant: str
    backend: str
    node_id: str


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A call that both casts serve, and in what its entries differ: `source`, `timing`, `binaries`,
    `verdict`, `evidence` and others; `source_diff` has the lines that differ."""

    operator: str
    variant: str
    backend: str
    node_ids: tuple[str, str]
    differs: tuple[str, ...]
    speedups: tuple[float | None, float | None]
    archs: tuple[tuple[str, ...], tuple[str, ...]]
    source_diff: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Two casts compared, call by call. `header` has the fields that differ, both values each, and
    who signed."""

    header: dict[str, tuple[str, str]]
    only_first: tuple[Kernel, ...]
    only_second: tuple[Kernel, ...]
    changed: tuple[Changed, ...]
    same_bytes: bool

    @property
    def equal(self) -> bool:
        """Whether they hold the same, in whatever order."""
        return not (self.header or self.only_first or self.only_second or self.changed)


def compare(first: CastFile, second: CastFile) -> Difference:
    """Everything that tells two casts apart."""
    here = {entry.serves: entry for entry in first.entries}
    there = {entry.serves: entry for entry in second.entries}
    both = [(first, here[key], second, there[key]) for key in here if key in there]
    return Difference(
        header=dict(_header(first, second)),
        only_first=tuple(_kernel(e) for key, e in here.items() if key not in there),
        only_second=tuple(_kernel(e) for key, e in there.items() if key not in here),
        changed=tuple(c for pair in both if (c := _changed(*pair)).differs),
        same_bytes=first.sha256 == second.sha256,
    )


def _header(first: CastFile, second: CastFile) -> Iterator[tuple[str, tuple[str, str]]]:
    here, there = codec.dump(first.header), codec.dump(second.header)
    for field in fields(first.header):
        if field.name == "created_at" and here[field.name] != there[field.name]:
            yield field.name, (_date(here[field.name]), _date(there[field.name]))
        elif here[field.name] != there[field.name]:
            yield field.name, (_text(here[field.name]), _text(there[field.name]))
    signers = (_signer(first), _signer(second))
    if signers[0] != signers[1]:
        yield "signature", signers


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(inner)}" for name, inner in value.items() if inner)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value or "")


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _signer(cast: CastFile) -> str:
    return cast.signed.fingerprint if cast.signed else UNSIGNED


def _kernel(entry: Entry) -> Kernel:
    return Kernel(
        operator=entry.call.name,
        variant=variant_text(entry.call),
        backend=entry.backend,
        node_id=entry.node_id,
    )


def _changed(first: CastFile, one: Entry, second: CastFile, other: Entry) -> Changed:
    pairs = {
        "source": (one.source_digest, other.source_digest),
        "timing": (one.timing, other.timing),
        "binaries": (one.binaries, other.binaries),
        "verdict": (one.verdict, other.verdict),
        "evidence": ((one.origin, one.elsewhere), (other.origin, other.elsewhere)),
        "call": (one.call, other.call),
        "label": (one.label, other.label),
        "share": ((one.share, one.calls), (other.share, other.calls)),
        "node": (one.node_id, other.node_id),
    }
    return Changed(
        operator=one.call.name,
        variant=variant_text(one.call),
        backend=one.backend,
        node_ids=(one.node_id, other.node_id),
        differs=tuple(name for name, (a, b) in pairs.items() if a != b),
        speedups=(_speedup(one), _speedup(other)),
        archs=(_archs(one), _archs(other)),
        source_diff=tuple(_lines(_source(first, one), _source(second, other))),
    )


def _speedup(entry: Entry) -> float | None:
    return entry.timing.speedup if entry.timing else None


def _archs(entry: Entry) -> tuple[str, ...]:
    return tuple(binary.arch for binary in entry.binaries)


def _source(cast: CastFile, entry: Entry) -> list[str]:
    return cast.files[entry.file].decode().splitlines()


def _lines(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    """The lines that differ with those around them, without the names of files that diff puts
    first."""
    yield from list(difflib.unified_diff(one, other, lineterm=""))[2:]
