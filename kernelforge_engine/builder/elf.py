"""Reading little-endian ELF64 files: cubins, objects and shared objects."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

MACHINE, SEGMENT_TABLE, SECTION_TABLE, SEGMENT_COUNT, SECTION_COUNT = 0x12, 0x20, 0x28, 0x38, 0x3A
SEGMENT = struct.Struct("<IIQQQQQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
DYNAMIC_ENTRY = struct.Struct("<qQ")
SYMBOLS, DYNAMIC, NO_DATA, DYNAMIC_SYMBOLS = 2, 6, 8, 11  # kinds of sections
WRITABLE, EXECUTABLE = 0x1, 0x4  # flags of sections
LOADED, THREAD_LOCAL, READ_ONLY_AFTER = 1, 7, 0x6474E552  # kinds of segments
SEGMENT_WRITABLE = 0x2
OBJECT, THREAD_OBJECT = 1, 6  # kinds of symbols


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section; `link` is the number of the section that its content refers to."""

    name: str
    kind: int
    flags: int
    link: int
    data: bytes


@dataclass(frozen=True, kw_only=True)
class Symbol:
    """A symbol other files can see or have to bring."""

    name: str
    defined: bool


@dataclass(frozen=True, kw_only=True)
class Segment:
    """What the loader maps, or does with a part of it."""

    kind: int
    flags: int
    address: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A symbol with its place, from the start of the image, of a thread's own memory or, in an
    object file, of its section."""

    name: str
    kind: int
    section: int
    address: int
    bytes: int


def machine(image: bytes) -> int:
    """The number of the instruction set."""
    return int(struct.unpack_from("<H", image, MACHINE)[0])


def sections(image: bytes) -> list[Section]:
    """All sections, in the order of their numbers."""
    (start,) = struct.unpack_from("<Q", image, SECTION_TABLE)
    count, names = struct.unpack_from("<HH", image, SECTION_COUNT + 2)
    headers = [SECTION.unpack_from(image, start + i * SECTION.size) for i in range(count)]
    contents = [b"" if h[1] == NO_DATA else image[h[4] : h[4] + h[5]] for h in headers]
    return [
        Section(name=text(contents[names], h[0]), kind=h[1], flags=h[2], link=h[6], data=content)
        for h, content in zip(headers, contents, strict=True)
    ]


def text(table: bytes, offset: int) -> str:
    """The string at `offset` of a string table."""
    return table[offset : table.index(b"\0", offset)].decode(errors="replace")


def symbols(parts: list[Section], kind: int) -> list[Symbol]:
    """The global and weak symbols of every symbol table of that kind."""
    found = []
    for table in (part for part in parts if part.kind == kind):
        for name, info, _, section, _, _ in SYMBOL.iter_unpack(table.data):
            if info >> 4:
                label = text(parts[table.link].data, name)
                found.append(Symbol(name=label, defined=section != 0))
    return found


def segments(image: bytes) -> list[Segment]:
    """All segments."""
    (start,) = struct.unpack_from("<Q", image, SEGMENT_TABLE)
    (count,) = struct.unpack_from("<H", image, SEGMENT_COUNT)
    headers = [SEGMENT.unpack_from(image, start + i * SEGMENT.size) for i in range(count)]
    return [Segment(kind=h[0], flags=h[1], address=h[3], bytes=h[6]) for h in headers]


def placed(parts: list[Section]) -> list[Placed]:
    """The symbols that are defined, local ones too."""
    return [
        Placed(
            name=text(parts[table.link].data, name),
            kind=info & 15,
            section=section,
            address=value,
            bytes=size,
        )
        for table in parts
        if table.kind == SYMBOLS
        for name, info, _, section, value, size in SYMBOL.iter_unpack(table.data)
        if section
    ]


def dynamic(parts: Iterable[Section]) -> list[tuple[int, int]]:
    """What the loader is told, as (tag, value), behind the end mark too."""
    tables = (part.data for part in parts if part.kind == DYNAMIC)
    return [entry for table in tables for entry in DYNAMIC_ENTRY.iter_unpack(table)]
