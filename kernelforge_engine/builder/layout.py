"""Where a cpu candidate can keep something between its calls, for the Runner to look at.

Which of these places is a table that is filled once, and which a counter, cannot be read from an
object file: both are writable memory without a type. Only what happens to them can tell.
"""

from collections.abc import Mapping

from kernelforge_engine.builder import elf, mangling
from kernelforge_engine.calls import Json

PAGE = 4096
MOST = 64  # variables that are named
REPEAT, MARK = "kf_repeat", "kf_mark"  # the engine's own, with known places in a running process


def layout(image: bytes, environment: Mapping[str, str]) -> dict[str, Json]:
    """The writable memory of a shared object.

    `segments` has the place and size of each part, counted from the start of the image, and `base`
    the place of kf_repeat. Of the memory that every thread has for itself, `thread_bytes` is the
    size and `thread_mark` the place of kf_mark. `variables` names what lies in `segments`.
    """
    segments = elf.segments(image)
    symbols = elf.placed(elf.sections(image))
    places = {s.name: s.address for s in symbols if s.name in (REPEAT, MARK)}
    writable = [part for s in segments if (part := _writable(s, segments))[1]]
    return {
        "base": places[REPEAT],
        "segments": [list(part) for part in writable],
        "thread_bytes": sum(s.bytes for s in segments if s.kind == elf.THREAD_LOCAL),
        "thread_mark": places[MARK],
        "variables": _variables(symbols, writable, environment),
    }


def _writable(segment: elf.Segment, segments: list[elf.Segment]) -> tuple[int, int]:
    """Place and size of what stays writable of a segment; 0 bytes where nothing does."""
    if segment.kind != elf.LOADED or not segment.flags & elf.SEGMENT_WRITABLE:
        return segment.address, 0
    start, end = segment.address, segment.address + segment.bytes
    for other in segments:
        # The loader protects whole pages.
        protected = (other.address + other.bytes) // PAGE * PAGE
        if other.kind == elf.READ_ONLY_AFTER and segment.address <= other.address < end:
            start = max(start, protected)
    return start, max(0, end - start)


def _variables(
    symbols: list[elf.Placed], writable: list[tuple[int, int]], environment: Mapping[str, str]
) -> Json:
    found = sorted(
        (s.address, s.bytes, s.name)
        for s in symbols
        if s.kind == elf.OBJECT
        and s.bytes
        and s.name != "completed.0"  # every shared object has one
        and any(start <= s.address < start + size for start, size in writable)
    )[:MOST]
    readable = mangling.demangled([name for _, _, name in found], environment)
    return [[readable.get(name, name), place, size] for place, size, name in found]
