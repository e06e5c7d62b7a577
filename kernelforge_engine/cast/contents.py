"""The records of a cast: a header, and one entry per kernel with its call and its evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernelforge_engine.calls import Backend, Call
from kernelforge_engine.cast.signing import Signed
from kernelforge_engine.evidence import Evidence, Machine, Origin
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.measurements import WholeModel
from kernelforge_engine.plans import LaunchPlan, ResolvedPlan, Source
from kernelforge_engine.records import Label, Timing, Verdict

FILE_TYPE = "kernelforge.cast"
FORMAT_VERSION = 1
SUFFIXES: dict[Backend, str] = {"cpu": ".cpp", "cuda": ".cu"}


@dataclass(frozen=True, kw_only=True)
class Header:
    """What kind of file this is and where it was made; `created_at` is seconds since 1970.

    `made_from` has the SHA-256 of the casts it was put together or adapted from, and `whole_model`
    what an export found about the model with it, None where it did not look.
    """

    created_at: float
    kernelforge: str
    torch: str
    device_name: str
    made_by: Literal["export", "merge", "adapt"] = "export"
    made_from: tuple[str, ...] = ()
    whole_model: WholeModel | None = None
    type: str = FILE_TYPE
    version: int = FORMAT_VERSION


@dataclass(frozen=True, kw_only=True)
class Binary:
    """A cubin of an entry: `digest` is the SHA-256 of its bytes, `symbols` maps kernel names."""

    arch: str
    digest: str
    symbols: dict[str, str]
    compiler: str

    @property
    def file(self) -> str:
        """Its name in the archive."""
        return f"cubins/{self.arch}/{self.digest}.cubin"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One kernel: the call it serves, its plan as written and as launched, and the evidence; from
    its `origin` it can be judged again elsewhere.

    On the cpu backend there are no binaries: native host code is never shipped. With several
    binaries, or judged on several machines, `elsewhere` is what speaks for it on the others.
    """

    node_id: str
    call: Call
    backend: Backend
    source_digest: str
    plan: LaunchPlan
    resolved: ResolvedPlan
    binaries: tuple[Binary, ...]
    verdict: Verdict
    timing: Timing | None
    label: Label
    share: float
    calls: int
    origin: Origin | None = None
    elsewhere: tuple[Evidence, ...] = ()

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Where it is known to have been judged."""
        return (*((self.origin,) if self.origin else ()), *(e.origin for e in self.elsewhere))

    @property
    def serves(self) -> tuple[str, str, Backend, tuple[int, ...]]:
        """The call it claims: no other entry of a cast may claim the same."""
        return self.call.operator, self.call.overload, self.backend, self.call.words

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """What tells it from every other entry: one node may serve several sizes."""
        return self.node_id, self.call.words

    @property
    def file(self) -> str:
        """The name of its source in the archive."""
        return f"sources/{self.source_digest}{SUFFIXES[self.backend]}"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The entries of a cast."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True)
class CastFile:
    """A cast that was read and found consistent; `files` are its archive entries by name, `signed`
    says by whom it is signed."""

    path: Path
    header: Header
    entries: tuple[Entry, ...]
    files: Mapping[str, bytes]
    sha256: str
    bytes: int
    signed: Signed | None

    def source(self, entry: Entry) -> Source:
        """The source of an entry."""
        return parse_source(self.files[entry.file].decode(), entry.backend)

    def evidence(self, entry: Entry) -> tuple[Evidence, ...]:
        """What speaks for an entry, machine by machine, that of its exporter first."""
        own = Evidence(
            node_id=entry.node_id,
            verdict=entry.verdict,
            timing=entry.timing,
            origin=entry.origin or self._unknown(entry),
        )
        return own, *entry.elsewhere

    def _unknown(self, entry: Entry) -> Origin:
        """What the header tells of an entry that does not say how it came about."""
        machine = Machine(
            device_name=self.header.device_name,
            arch=entry.binaries[0].arch if entry.binaries else "",
            torch=self.header.torch,
            kernelforge=self.header.kernelforge,
        )
        return Origin(artifact_digest="", compiler="", machine=machine)
