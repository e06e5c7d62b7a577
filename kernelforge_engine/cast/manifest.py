"""What a cast says: a header, and one entry per kernel with the call it serves and the evidence.

The source text is the authority: its plan, the launches resolved from it and the guard words are
stored so that they can be read, and every reader derives them again and compares.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kernelforge_engine import codec
from kernelforge_engine.calls import Backend, Call
from kernelforge_engine.cast import archive
from kernelforge_engine.cast.words import NotAnArgument, call_words
from kernelforge_engine.errors import CastRejected
from kernelforge_engine.evidence import Origin
from kernelforge_engine.launch.header import SourceRejected, parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.plans import LaunchPlan, ResolvedPlan, Source
from kernelforge_engine.records import Label, Status, Timing, Verdict

FILE_TYPE = "kernelforge.cast"
FORMAT_VERSION = 1
HEADER = archive.FIRST
MANIFEST = "manifest.json"
SUFFIXES: dict[Backend, str] = {"cpu": ".cpp", "cuda": ".cu"}
OPERATOR = re.compile(r"[A-Za-z0-9_]+::[A-Za-z0-9_]+")
ARCH = re.compile(r"sm_[0-9]{2,3}[af]?")


@dataclass(frozen=True, kw_only=True)
class Header:
    """What kind of file this is and where it was made; `created_at` is seconds since 1970."""

    created_at: float
    kernelforge: str
    torch: str
    device_name: str
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

    On the cpu backend there are no binaries: native host code is never shipped.
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
    """A cast that was read and found consistent; `files` are its archive entries by name."""

    path: Path
    header: Header
    entries: tuple[Entry, ...]
    files: Mapping[str, bytes]

    def source(self, entry: Entry) -> Source:
        """The source of an entry."""
        return parse_source(self.files[entry.file].decode(), entry.backend)


class _Inconsistent(Exception):
    """Why a manifest is not believed."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


def write(
    path: Path,
    header: Header,
    entries: Sequence[Entry],
    *,
    sources: Mapping[str, str],
    binaries: Mapping[str, bytes],
) -> str:
    """Write a cast and return the SHA-256 of the file: the same arguments give the same bytes.

    Args:
        path: where to write; an existing file is replaced.
        header: what the reader learns first.
        entries: in the order in which they are listed.
        sources: text by source digest.
        binaries: cubins by the SHA-256 of their bytes.

    Raises:
        CastRejected: the entries are inconsistent, or break a limit of the archive.
        OSError: `path` cannot be written.
    """
    files = {
        HEADER: codec.dumps(header).encode(),
        MANIFEST: codec.dumps(Manifest(entries=tuple(entries))).encode(),
    }
    for entry in entries:
        files[entry.file] = sources[entry.source_digest].encode()
        files |= {binary.file: binaries[binary.digest] for binary in entry.binaries}
    _checked(path, CastFile(path=path, header=header, entries=tuple(entries), files=files))
    return archive.write(path, files)


def read(path: Path) -> CastFile:
    """A cast whose archive, digests, plans and guard words have all been checked.

    Raises:
        CastRejected: with what is wrong and what to do about it.
    """
    files = archive.read(path)
    try:
        header = codec.loads(Header, files[HEADER])
        _known(path, header)
        manifest = codec.loads(Manifest, files[MANIFEST])
    except (KeyError, ValidationError) as error:
        why = f"{MANIFEST} or {HEADER} does not have the form of version {FORMAT_VERSION}"
        raise CastRejected(path=path, why=why, step=archive.AGAIN) from error
    return _checked(path, CastFile(path=path, header=header, entries=manifest.entries, files=files))


def _known(path: Path, header: Header) -> None:
    if header.type != FILE_TYPE:
        raise CastRejected(path=path, why=f"its type is {header.type!r}", step=archive.AGAIN)
    if header.version != FORMAT_VERSION:
        why = f"it has format version {header.version}; this Kernel Forge reads {FORMAT_VERSION}"
        step = "use the Kernel Forge release that wrote it, or export it again with this one"
        raise CastRejected(path=path, why=why, step=step)


def _checked(path: Path, cast: CastFile) -> CastFile:
    try:
        _check_claims(cast.entries)
        for entry in cast.entries:
            _check_entry(entry, cast.files)
        _check_extra(cast)
    except _Inconsistent as error:
        raise CastRejected(path=path, why=str(error), step=archive.AGAIN) from error
    return cast


def _check_claims(entries: Sequence[Entry]) -> None:
    keys = [(e.call.operator, e.call.overload, e.backend, e.call.words) for e in entries]
    if len(set(keys)) < len(keys):
        raise _Inconsistent(why="two of its entries claim the same call")
    if len({(e.node_id, e.source_digest) for e in entries}) > len({e.node_id for e in entries}):
        raise _Inconsistent(why="entries with the same node id have different sources")


def _check_extra(cast: CastFile) -> None:
    named = {HEADER, MANIFEST, *(name for e in cast.entries for name in _files_of(e))}
    if extra := set(cast.files) - named:
        raise _Inconsistent(why=f"no entry names {min(extra)}")


def _files_of(entry: Entry) -> Iterator[str]:
    yield entry.file
    yield from (binary.file for binary in entry.binaries)


def _check_entry(entry: Entry, files: Mapping[str, bytes]) -> None:
    where, call = f"entry {entry.node_id}", entry.call
    if missing := [name for name in _files_of(entry) if name not in files]:
        raise _Inconsistent(why=f"{where} names {missing[0]}, which is not in the archive")
    if entry.verdict.status != Status.VALID:
        raise _Inconsistent(why=f"{where} was not found valid")
    _check_call(where, call, entry.backend)
    _check_plan(where, entry, files[entry.file])
    kernels = {launch.kernel for launch in entry.resolved.launches}
    for binary in entry.binaries:
        if codec.sha256(files[binary.file]) != binary.digest or not ARCH.fullmatch(binary.arch):
            raise _Inconsistent(why=f"{binary.file} is not what {where} says")
        if entry.backend != "cuda" or set(binary.symbols) != kernels:
            raise _Inconsistent(why=f"{binary.file} does not hold the kernels of {where}")


def _check_call(where: str, call: Call, backend: Backend) -> None:
    try:
        words = call_words(call)
    except NotAnArgument as error:
        raise _Inconsistent(why=f"{where} has an argument that cannot be read") from error
    if words != call.words or not OPERATOR.fullmatch(call.operator) or call.backend != backend:
        raise _Inconsistent(why=f"the guard words of {where} do not fit its arguments")
    aliases = [output.alias for output in call.outputs if output.alias is not None]
    inputs = range(len(call.inputs))
    if not set(aliases) <= set(call.mutated) <= set(inputs) or not call.outputs:
        raise _Inconsistent(why=f"{where} returns or writes an argument it does not have")


def _check_plan(where: str, entry: Entry, text: bytes) -> None:
    try:
        source = parse_source(text.decode(), entry.backend)
        resolved = resolve(source.plan, entry.call)
    except (SourceRejected, UnicodeDecodeError, KeyError) as error:
        raise _Inconsistent(why=f"the source of {where} is refused ({error})") from error
    if source.digest != entry.source_digest:
        raise _Inconsistent(why=f"the source of {where} has another digest")
    if source.plan != entry.plan or resolved != entry.resolved:
        raise _Inconsistent(why=f"the plan of {where} is not the one of its source")
