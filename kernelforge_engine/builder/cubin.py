"""What a cubin says of its kernels: their symbols, and the registers and local memory they use.

A cubin is a little-endian ELF64 file. NVIDIA does not document the attributes of `.nv.info`; these
were read from cubins of CUDA 13.0 and agreed with what `ptxas -v` printed for the same kernels.
"""

import struct
from collections.abc import Iterator, Mapping

from kernelforge_engine.builder import elf
from kernelforge_engine.calls import Json

ATTRIBUTE = struct.Struct("<BBH")
PAIR = struct.Struct("<II")
WITH_PAYLOAD = 4  # other formats keep their value where this one keeps its size
FRAME_BYTES, REGISTERS = 0x11, 0x2F


def kernels(image: bytes) -> list[str]:
    """The symbols of all kernels."""
    names = (section.name for section in elf.sections(image))
    return [n.removeprefix(".nv.info.") for n in names if n.startswith(".nv.info.")]


def wanted(image: bytes) -> list[str]:
    """The symbols that something else has to bring; names with a dot at the front are the
    driver's own places."""
    symbols = elf.symbols(elf.sections(image), elf.SYMBOLS)
    return [s.name for s in symbols if not s.defined and not s.name.startswith(".nv.")]


def resources(
    image: bytes, symbols: Mapping[str, str], spilt: Mapping[str, Mapping[str, int]]
) -> dict[str, Json]:
    """Registers and bytes of local memory a thread uses, per kernel name of the plan, beside what
    was `spilt` by each symbol."""
    sections = elf.sections(image)
    found: dict[str, dict[str, Json]] = {s: {**spilt.get(s, {})} for s in symbols.values()}
    for attribute, symbol, value in _attributes(sections):
        key = {REGISTERS: "registers", FRAME_BYTES: "local_bytes"}.get(attribute)
        if key and symbol in found:
            found[symbol][key] = value
    return {kernel: dict(found[symbol]) for kernel, symbol in symbols.items()}


def _attributes(sections: list[elf.Section]) -> Iterator[tuple[int, str, int]]:
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
            name = elf.SYMBOL.unpack_from(table.data, index * elf.SYMBOL.size)[0]
            yield attribute, elf.text(names, name), value
        offset += size
