"""Casts that are made of other casts, on their way to the disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelforge_engine.cast import archive, signing
from kernelforge_engine.cast.contents import CastFile, Entry, Header
from kernelforge_engine.cast.manifest import read, write
from kernelforge_engine.errors import NotWritten


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A cast before it is written; sources and binaries by their digests."""

    header: Header
    entries: Sequence[Entry]
    sources: Mapping[str, str]
    binaries: Mapping[str, bytes]


def save(path: Path, draft: Draft) -> None:
    """Write a draft, unsigned: what was put together anew, nobody has signed.

    Raises:
        CastRejected: it breaks a limit of the archive.
        NotWritten: the path cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, draft.header, draft.entries, sources=draft.sources, binaries=draft.binaries)
    except OSError as error:
        raise _not_written(path, error) from error


def sign(path: Path, key: Path, output: Path | None = None) -> signing.Signed:
    """Sign a cast in place, or write the signed one to `output`; an older signature is replaced.

    Raises:
        CastRejected, KeyUnusable, SigningMissing, NotWritten
    """
    files = signing.unsigned(read(path).files)
    made, signed = signing.signature(files, key)
    target = output or path
    try:
        archive.write(target, {**files, signing.NAME: made})
    except OSError as error:
        raise _not_written(target, error) from error
    return signed


def texts(cast: CastFile) -> dict[str, str]:
    """The sources of a cast by digest."""
    return {e.source_digest: cast.files[e.file].decode() for e in cast.entries}


def images(cast: CastFile) -> dict[str, bytes]:
    """The cubins of a cast by digest."""
    return {b.digest: cast.files[b.file] for e in cast.entries for b in e.binaries}


def _not_written(path: Path, error: OSError) -> NotWritten:
    step = "free space there, or choose another path"
    return NotWritten(what="The cast", path=path, why=error.strerror, step=step)
