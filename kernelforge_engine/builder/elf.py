"""Reading little-endian ELF64 files: cubins, objects and shared objects."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

MACHINE, SECTION_TABLE, SECTION_COUNT = 0x12, 0x28, 0x3A
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
DYNAMIC_ENTRY = struct.Struct("<qQ")
SYMBOLS, DYNAMIC, NO_DATA, DYNAMIC_SYMBOLS = 2, 6, 8, 11  # kinds of sections
WRITABLE, EXECUTABLE = 0x1, 0x4  # flags of sections


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


def dynamic(parts: Iterable[Section]) -> list[tuple[int, int]]:
    """What the loader is told, as (tag, value), behind the end mark too."""
    tables = (part.data for part in parts if part.kind == DYNAMIC)
    return [entry for table in tables for entry in DYNAMIC_ENTRY.iter_unpack(table)]
