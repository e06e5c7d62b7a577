"""What a cubin says of its kernels: their symbols, and the registers and local memory they use.

A cubin is a little-endian ELF64 file. NVIDIA does not document the attributes of `.nv.info`; these
were read from cubins of CUDA 13.0 and agreed with what `ptxas -v` printed for the same kernels.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelforge_engine.records import Json

SECTION_TABLE, SECTION_COUNT = 0x28, 0x3A
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
ATTRIBUTE = struct.Struct("<BBH")
PAIR = struct.Struct("<II")
WITH_PAYLOAD = 4  # other formats keep their value where this one keeps its size
FRAME_BYTES, REGISTERS = 0x11, 0x2F


@dataclass(frozen=True, kw_only=True)
class _Section:
    name: str
    link: int
    data: bytes


def kernels(image: bytes) -> list[str]:
    """The symbols of all kernels."""
    names = (section.name for section in _sections(image))
    return [n.removeprefix(".nv.info.") for n in names if n.startswith(".nv.info.")]


def resources(image: bytes, symbols: Mapping[str, str]) -> dict[str, Json]:
    """Registers and bytes of local memory a thread uses, per kernel name of the plan."""
    sections = _sections(image)
    found: dict[str, dict[str, Json]] = {symbol: {} for symbol in symbols.values()}
    for attribute, symbol, value in _attributes(sections):
        key = {REGISTERS: "registers", FRAME_BYTES: "local_bytes"}.get(attribute)
        if key and symbol in found:
            found[symbol][key] = value
    return {kernel: dict(found[symbol]) for kernel, symbol in symbols.items()}


def _sections(image: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", image, SECTION_TABLE)
    count, names = struct.unpack_from("<HH", image, SECTION_COUNT + 2)
    headers = [SECTION.unpack_from(image, start + i * SECTION.size) for i in range(count)]
    contents = [image[h[4] : h[4] + h[5]] for h in headers]
    return [
        _Section(name=_text(contents[names], header[0]), link=header[6], data=content)
        for header, content in zip(headers, contents, strict=True)
    ]


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()


def _attributes(sections: list[_Section]) -> Iterator[tuple[int, str, int]]:
    """(attribute, symbol, value) of the section that describes the whole image."""
    info = next((s for s in sections if s.name == ".nv.info"), None)
    if info is None:
        return
    table = sections[info.link]
    names = sections[table.link].data
    offset = 0
    while offset < len(info.data):
        form, attribute, size = ATTRIBUTE.unpack_from(info.data, offset)
        offset += ATTRIBUTE.size
        if form != WITH_PAYLOAD:
            continue
        if size == PAIR.size:
            index, value = PAIR.unpack_from(info.data, offset)
            name = SYMBOL.unpack_from(table.data, index * SYMBOL.size)[0]
            yield attribute, _text(names, name), value
        offset += size
