"""What a cast says, written and read.

The source text is the authority: its plan, the launches resolved from it and the guard words are
stored so that they can be read, and every reader derives them again and compares.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from kernelforge_engine import codec
from kernelforge_engine.cast import archive, keys, signing
from kernelforge_engine.cast.checks import HEADER, MANIFEST, check
from kernelforge_engine.cast.contents import (
    FILE_TYPE,
    FORMAT_VERSION,
    Binary,
    CastFile,
    Entry,
    Header,
    Manifest,
)
from kernelforge_engine.errors import CastRejected

__all__ = ["HEADER", "MANIFEST", "Binary", "CastFile", "Entry", "Header", "read", "write"]

T = TypeVar("T")


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
    check(path, header, entries, files)
    return archive.write(path, files)


def read(path: Path, trusted: keys.Trusted | None = None) -> CastFile:
    """A cast whose archive, digests, plans and guard words have all been checked.

    Args:
        path: where it is.
        trusted: the public keys whose signatures are accepted, as `keys.fingerprints` takes them;
            None accepts any cast that is not wrongly signed.

    Raises:
        CastRejected: with what is wrong and what to do about it.
        CastUntrusted: nobody of `trusted` signed it.
        KeyUnusable, SigningMissing
    """
    found = archive.read(path)
    signed = signing.check(path, found.files, trusted)
    header = _read(path, found.files, HEADER, Header)
    _known(path, header)
    entries = _read(path, found.files, MANIFEST, Manifest).entries
    check(path, header, entries, signing.unsigned(found.files))
    return CastFile(
        path=path,
        header=header,
        entries=entries,
        files=found.files,
        sha256=found.sha256,
        bytes=found.bytes,
        signed=signed,
    )


def _read(path: Path, files: Mapping[str, bytes], name: str, kind: type[T]) -> T:
    try:
        record = codec.loads(kind, files[name])
        codec.dumps(record)
    except (KeyError, ValueError) as error:  # also what pydantic raises, and a number like NaN
        why = f"{name} is missing or does not have the form of version {FORMAT_VERSION}"
        raise CastRejected(path=path, why=why, step=archive.AGAIN) from error
    return record


def _known(path: Path, header: Header) -> None:
    if header.type != FILE_TYPE:
        raise CastRejected(path=path, why=f"its type is {header.type!r}", step=archive.AGAIN)
    if header.version != FORMAT_VERSION:
        why = f"it has format version {header.version}; this Kernel Forge reads {FORMAT_VERSION}"
        step = "use the Kernel Forge release that wrote it, or export it again with this one"
        raise CastRejected(path=path, why=why, step=step)
