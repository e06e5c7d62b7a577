"""All that a person may want to know of a cast before it is used."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernelforge_engine.calls import Backend
from kernelforge_engine.cast.across import across_text
from kernelforge_engine.cast.contents import CastFile, Entry
from kernelforge_engine.cast.keys import Trusted
from kernelforge_engine.cast.manifest import read
from kernelforge_engine.cast.summary import figures, printable, summarized
from kernelforge_engine.evidence import Evidence
from kernelforge_engine.exchanges import CastSummary
from kernelforge_engine.launch.describe import variant_text
from kernelforge_engine.records import Label, Outcome

Signature = Literal["unsigned", "signed", "unchecked"]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a kernel came to on one machine at one size; without a timing it was judged there, and
    a size near it was timed."""

    device_name: str
    arch: str
    torch: str
    tier: str
    outcome: Outcome | None
    eager_us: float | None
    candidate_us: float | None
    speedup: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class SizeReport:
    """One call that a kernel serves."""

    node_id: str
    variant: str
    calls: int
    share: float
    found: tuple[Found, ...]


@dataclass(frozen=True, kw_only=True)
class KernelReport:
    """One source with the calls it serves. `sampled` counts inputs of which a few values are in the
    cast, `whole` those of which all are; `owners` are regions of the model whose text is."""

    number: int
    operator: str
    variant: str
    backend: Backend
    source_digest: str
    lines: int
    label: Label
    archs: tuple[str, ...]
    compiler: str
    calls: int
    share: float
    sampled: int
    whole: int
    owners: tuple[str, ...]
    sizes: tuple[SizeReport, ...]


@dataclass(frozen=True, kw_only=True)
class CastReport(CastSummary):
    """A cast with where it comes from; `created_at` is seconds since 1970, `made_from` the SHA-256
    of other casts. `unchecked`: the library that checks a signature is not installed."""

    created_at: float
    kernelforge: str
    made_by: str
    made_from: tuple[str, ...]
    signature: Signature
    signed_by: str | None
    kernels: tuple[KernelReport, ...]


def report(path: Path, trusted: Trusted | None = None) -> CastReport:
    """Read a cast, checking its structure, every hash and its signature.

    Raises:
        CastRejected, CastUntrusted, KeyUnusable, SigningMissing
    """
    cast = read(path, trusted)
    checked: Signature = "signed" if cast.signed and cast.signed.checked else "unchecked"
    return CastReport(
        **vars(summarized(cast)),
        created_at=cast.header.created_at,
        kernelforge=cast.header.kernelforge,
        made_by=cast.header.made_by,
        made_from=cast.header.made_from,
        signature=checked if cast.signed else "unsigned",
        signed_by=cast.signed.fingerprint if cast.signed else None,
        kernels=tuple(_kernel(cast, i, group) for i, group in enumerate(kernels(cast), 1)),
    )


def kernels(cast: CastFile) -> list[list[Entry]]:
    """The entries by source: one source may serve many sizes of a shape family."""
    groups: dict[str, list[Entry]] = {}
    for entry in cast.entries:
        groups.setdefault(entry.source_digest, []).append(entry)
    return list(groups.values())


def _kernel(cast: CastFile, number: int, group: Sequence[Entry]) -> KernelReport:
    first = group[0]
    samples = [sample for e in group for o in e.origins for sample in o.samples]
    return KernelReport(
        number=number,
        operator=" and ".join(dict.fromkeys(e.call.name for e in group)),
        variant=printable(across_text([e.call for e in group])),
        backend=first.backend,
        source_digest=first.source_digest,
        lines=len(cast.files[first.file].splitlines()),
        label=first.label,
        archs=tuple(dict.fromkeys(b.arch for e in group for b in e.binaries)),
        compiler=printable(first.origin.compiler if first.origin else ""),
        calls=sum(e.calls for e in group),
        share=sum(e.share for e in group),
        sampled=sum(not sample.whole for sample in samples),
        whole=sum(sample.whole for sample in samples),
        owners=tuple(sorted({r.owner for e in group if (r := e.call.region) and r.source})),
        sizes=tuple(_size(cast, entry) for entry in group),
    )


def _size(cast: CastFile, entry: Entry) -> SizeReport:
    return SizeReport(
        node_id=entry.node_id,
        variant=printable(variant_text(entry.call)),
        calls=entry.calls,
        share=entry.share,
        found=tuple(_found(evidence) for evidence in cast.evidence(entry)),
    )


def _found(evidence: Evidence) -> Found:
    machine = evidence.origin.machine
    return Found(
        device_name=machine.device_name,
        arch=machine.arch,
        torch=machine.torch,
        tier=printable(str(evidence.verdict.evidence.get("policy", "full"))),
        **figures(evidence.timing),
    )
