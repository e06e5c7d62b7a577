"""The container of a cast: a ZIP file with the same bytes for the same content, and a reader that
trusts none of it.

Entries are held in memory and never extracted to disk by name.
"""

import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelforge_engine.codec import sha256
from kernelforge_engine.errors import CastRejected

FIRST = "HEADER.json"
CHECKSUMS = "checksums.sha256"
NAME = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+){0,3}")
MAX_NAME = 200
MAX_ENTRIES = 256
MAX_BYTES = 64 << 20
MAX_RATIO = 100
CHUNK = 1 << 16
END = b"PK\x05\x06"
END_BYTES = 22
LOCAL_BYTES = 30
CENTRAL_BYTES = 46
EPOCH = (1980, 1, 1, 0, 0, 0)
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
MALFORMED = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError,
    OverflowError,
)  # fmt: skip

AGAIN = "export it again, or fetch it again from where it came"


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A cast archive in memory: its entries by name, without the checksums that were verified, and
    the digest and size of the file they were read from."""

    files: dict[str, bytes]
    sha256: str
    bytes: int


class _Refused(Exception):
    """Why an archive is not accepted."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


def write(path: Path, files: Mapping[str, bytes]) -> str:
    """Write entries as a cast archive and return the SHA-256 of the file.

    `files` must contain HEADER.json; the checksums are added here. The file appears whole or not
    at all.

    Raises:
        CastRejected: the entries break a rule that `read` enforces.
        OSError: `path` cannot be written.
    """
    entries = {**files, CHECKSUMS: listing(files)}
    try:
        _check_names(entries)
        _check_size(sum(map(len, entries.values())))
    except _Refused as refused:
        step = "put fewer kernels into one cast"
        raise CastRejected(path=path, why=str(refused), step=step) from refused
    data = _packed(entries)
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return sha256(data)


def _packed(entries: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(entries, key=lambda n: (n != FIRST, n)):
            archive.writestr(_member(name, entries[name]), entries[name], compresslevel=9)
    return buffer.getvalue()


def _member(name: str, data: bytes) -> zipfile.ZipInfo:
    """A member with nothing in it of the machine or the time; what packs too well stays plain."""
    member = zipfile.ZipInfo(name, EPOCH)
    member.create_system = 3
    member.external_attr = (stat.S_IFREG | 0o644) << 16
    packed = len(zlib.compress(data, 9))
    member.compress_type = (
        zipfile.ZIP_DEFLATED if packed < len(data) < packed * MAX_RATIO else zipfile.ZIP_STORED
    )
    return member


def listing(files: Mapping[str, bytes]) -> bytes:
    """What checksums.sha256 says of entries: a line of digest and name for each, sorted by name."""
    return "".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files)).encode()


def read(path: Path) -> Contents:
    """A cast archive whose every rule and checksum holds.

    Raises:
        CastRejected: the file is missing, is not such an archive, or breaks a rule of FORMAT.md.
    """
    try:
        data = _bytes_of(path)
        return Contents(files=_entries(data), sha256=sha256(data), bytes=len(data))
    except _Refused as refused:
        raise CastRejected(path=path, why=str(refused), step=AGAIN) from refused
    except OSError as error:
        step = "check the path and its permissions"
        why = f"it cannot be read ({error.strerror or error})"
        raise CastRejected(path=path, why=why, step=step) from error
    except MALFORMED as error:
        why = f"it is damaged ({error})"
        raise CastRejected(path=path, why=why, step=AGAIN) from error


def _bytes_of(path: Path) -> bytes:
    """The bytes of a regular file, never more than a cast may have: a pipe or a device has no end,
    and to open one may wait for ever."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise _Refused(why="it is not a regular file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise _Refused(why=f"the file is larger than {MAX_BYTES} bytes")
    return data


def _entries(data: bytes) -> dict[str, bytes]:
    end = data[-END_BYTES:]
    if end[: len(END)] != END:
        why = "it does not end as a ZIP file does: it is another kind of file, or was cut short"
        raise _Refused(why=why)
    size, start = (int.from_bytes(end[at : at + 4], "little") for at in (12, 16))
    if start + size + END_BYTES != len(data):
        raise _Refused(why="the ZIP directory is not where its end says, or bytes are in between")
    if size > MAX_ENTRIES * (CENTRAL_BYTES + MAX_NAME):
        raise _Refused(why=f"it has too many entries; {MAX_ENTRIES} are allowed")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        _check_names([member.filename for member in members])
        for member in members:
            _check_member(member)
        _check_layout(members, archive.start_dir)
        _check_size(sum(member.file_size for member in members))
        files = _contents(archive, members)
    listed = files.pop(CHECKSUMS)
    if listed != listing(files):
        raise _Refused(why=f"its entries are not those that {CHECKSUMS} lists")
    return files


def _check_names(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        long = len(name) > MAX_NAME
        if long or not NAME.fullmatch(name) or {".", ".."} & set(name.split("/")):
            name = f"{name[:MAX_NAME]}..." if long else name
            raise _Refused(why=f"the entry name {name!r} is not allowed")
        if name.lower() in seen:
            raise _Refused(why=f"the entry {name} is there twice")
        seen.add(name.lower())
    if len(seen) > MAX_ENTRIES:
        raise _Refused(why=f"it has {len(seen)} entries; {MAX_ENTRIES} are allowed")
    missing = {FIRST.lower(), CHECKSUMS} - seen
    if missing:
        raise _Refused(why=f"it has no {min(missing)}")


def _check_member(member: zipfile.ZipInfo) -> None:
    name, mode = member.filename, member.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise _Refused(why=f"the entry {name} is not a regular file")
    if member.flag_bits or member.compress_type not in METHODS or member.extra:
        raise _Refused(why=f"the entry {name} is encrypted, or packed in an unknown way")
    if member.file_size > MAX_RATIO * max(1, member.compress_size):
        raise _Refused(why=f"the entry {name} would unpack to over {MAX_RATIO} times its size")


def _check_layout(members: list[zipfile.ZipInfo], directory: int) -> None:
    """The entries must lie one behind the other from the first byte on, with nothing between."""
    position = 0
    for member in members:
        if member.header_offset != position:
            raise _Refused(why="it holds bytes that belong to no entry, or entries that overlap")
        position += LOCAL_BYTES + len(member.filename) + member.compress_size
    if position != directory or members[0].filename != FIRST:
        raise _Refused(why=f"it does not begin with {FIRST}, or holds bytes of no entry")


def _check_size(total: int) -> None:
    if total > MAX_BYTES:
        raise _Refused(why=f"its entries hold {total} bytes; {MAX_BYTES} are allowed")


def _contents(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> dict[str, bytes]:
    """Unpack while counting: the sizes in the headers are only claims."""
    files, total = {}, 0
    for member in members:
        parts = []
        with archive.open(member) as stream:
            while part := stream.read(CHUNK):
                total += len(part)
                _check_size(total)
                parts.append(part)
        files[member.filename] = b"".join(parts)
        if len(files[member.filename]) != member.file_size:
            raise _Refused(why=f"the entry {member.filename} is shorter than it says")
    return files
