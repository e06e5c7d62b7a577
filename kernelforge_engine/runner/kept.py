"""Whether a cpu candidate keeps something between its calls.

A table that is filled once is honest, a counter is not, and in an object file they look alike. What
tells them apart is what happens to them, so three places are looked at:

- Static variables: after the first two calls nothing in them may change any more, whatever the
  inputs are.
- Variables that a thread has for itself, and memory that was allocated and can be reached from
  these or from static ones. Both are used as scratch, whose content follows the inputs, so the plan
  is executed several times on the very same memory: what is different after each of these calls,
  and was not there before, does not come from the inputs. Scratch can differ as well where threads
  share the work as it comes; therefore allocated memory is compared while one thread does it all.

Memory is compared and never restored: a cast has nobody who restores it.

Not seen is what is reached by an address that is nowhere in memory as it is, what a thread other
than the first keeps in allocated memory, and what is read from memory that was freed.
"""

import ctypes
import os
import struct
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

from kernelforge_engine.calls import Json
from kernelforge_engine.runner.executor import unable
from kernelforge_engine.sandbox import libc

FREE_CALLS = 2  # a table may be filled at the first one, and a buffer may grow at the second
REPEATS = 6  # executions on the same memory
MOST_SECONDS = 2.0  # that these may take with one thread
PIECE = 512
# Of allocated memory so much is looked at, and so much of one place is searched for addresses.
MOST_BYTES, MOST_BLOCKS, SEARCHED_BYTES = 64 << 20, 8192, 1 << 18
SAMPLED_BYTES = 1 << 20  # of static variables, that can be compared between samples in no time
WORD = 8
STATIC = (
    "it changes {what} on call after call, and a candidate keeps nothing between calls: use a "
    "workspace of the launch header, local variables, or thread_local scratch"
)
OWN = (
    "executed again on the very same inputs it leaves something else in {what} every time, and a "
    "candidate keeps nothing between calls: a counter or a cache does that, scratch does not"
)
Memory = dict[int, bytes]


class Kept:
    """The memory that a loaded candidate can keep things in; `maps` is an open /proc/self/maps."""

    def __init__(self, layout: dict[str, Json], library: ctypes.CDLL, maps: int) -> None:
        known: Any = layout
        base = ctypes.cast(library.kf_repeat, ctypes.c_void_p).value or 0
        base -= known["base"]
        self._segments = [(base + place, size) for place, size in known["segments"]]
        self._variables = [(base + place, size, name) for name, place, size in known["variables"]]
        self._thread_bytes, self._mark = known["thread_bytes"], known["thread_mark"]
        self.place = ctypes.cast(library.kf_place, ctypes.c_void_p)
        self._maps = maps
        self._calls = 0
        self._static: Memory | None = None

    def after(self, calls: int, *, sampled: bool = False) -> None:
        """Look at the static variables after so many more calls, those of a sample or others.

        Raises:
            Unable: they changed.
        """
        self._calls += calls
        if self._static is None:
            if self._calls >= FREE_CALLS:
                self._static = _copied(self._segments)
            return
        if sampled and sum(size for _, size in self._segments) > SAMPLED_BYTES:
            return
        for place, size in self._segments:
            if not _same(place, self._static[place]):
                changed = place + _first(_read(place, size), self._static[place])
                raise unable(stage="state", error=STATIC.format(what=self._named(changed)))

    def watch(
        self,
        again: Callable[[], None],
        elsewhere: Callable[[], None],
        places: list[int],
        alone: Callable[[bool], None],
    ) -> None:
        """Execute the plan on the same memory, and look at all that is the candidate's own.

        `again` does that where it always runs, and `elsewhere` at addresses that it has not seen,
        for whoever counts only there. `places` are those of kf_mark in every thread, this one's
        first; `alone` says whether one thread has to do everything.

        Raises:
            Unable: the candidate keeps something.
        """
        seen = places[: max(1, MOST_BYTES // max(1, self._thread_bytes))]
        blocks = [(place - self._mark, self._thread_bytes) for place in seen]
        again()
        if _always_new(_states(again, lambda: _copied(blocks))):
            raise unable(stage="state", error=OWN.format(what="a thread_local variable"))
        alone(True)
        try:
            start = time.perf_counter()
            elsewhere()
            if (time.perf_counter() - start) * REPEATS > MOST_SECONDS:
                return
            states = _states(elsewhere, lambda: self._reached(blocks[:1]))
        finally:
            alone(False)
        if _always_new(states):
            raise unable(stage="state", error=OWN.format(what="memory that it keeps"))

    def _named(self, place: int) -> str:
        for start, size, name in self._variables:
            if start <= place < start + size:
                return f"the static variable {name}"
        return "a static variable"

    def _reached(self, roots: list[tuple[int, int]]) -> Memory:
        """The contents of `roots`, and of all allocated memory that these and static variables
        lead to."""
        heap = _Heap(self._maps)
        found = _copied(roots)
        pending = [*found.values(), *_copied(self._segments).values()]
        left = MOST_BYTES
        while pending:
            for place, size in heap.blocks(pending.pop()):
                if place not in found and size <= left and len(found) < MOST_BLOCKS:
                    left -= size
                    found[place] = _read(place, size)
                    pending.append(found[place])
        return found


class _Heap:
    """Where glibc's allocator has memory in use, by the sizes that stand before each block."""

    def __init__(self, maps: int) -> None:
        lines = _text(maps).splitlines()
        parts = [line.split(maxsplit=5) for line in lines]
        bounds = [
            tuple(int(number, 16) for number in part[0].split("-"))
            for part in parts
            if part[1] == "rw-p" and (len(part) == 5 or part[5].startswith(("[heap", "[anon")))
        ]
        self._starts = [start for start, _ in bounds]
        self._ends = [end for _, end in bounds]

    def blocks(self, content: bytes) -> Iterator[tuple[int, int]]:
        """The blocks that words of `content` point to the start of."""
        if not self._starts:
            return
        lowest, highest = self._starts[0], self._ends[-1]
        number = min(len(content), SEARCHED_BYTES) // WORD
        words = struct.unpack_from(f"={number}Q", content)
        for word in {w for w in words if lowest <= w < highest and w % 16 == 0}:
            if size := self._size(word):
                yield word, size

    def _size(self, place: int) -> int:
        """The usable bytes of the block at `place`, 0 where there is none."""
        number = bisect_right(self._starts, place - 16) - 1
        if number < 0 or place >= self._ends[number]:
            return 0
        size = _word(place - WORD)
        size, mapped = size & ~7, size & 2
        end = place - 16 + size
        if size < 32 or size % 16 or end > self._ends[number]:
            return 0
        if mapped:
            return size - 16
        # The word behind a block says whether it is in use.
        if end + WORD > self._ends[number] or not _word(end + WORD) & 1:
            return 0
        return size - WORD


def _states(again: Callable[[], None], state: Callable[[], Memory]) -> list[Memory]:
    found = [state()]
    for _ in range(REPEATS):
        again()
        found.append(state())
    return found


def _always_new(states: list[Memory]) -> bool:
    """Whether some word has another value in every state. Two that take turns, as the places of two
    buffers do, are nothing that is kept."""
    places = set(states[0]).intersection(*states[1:])
    for place in places:
        contents = [state[place] for state in states]
        alike = len(set(contents)) < len(contents) or len({len(c) for c in contents}) > 1
        if not alike and _differs(contents):
            return True
    return False


def _differs(contents: list[bytes]) -> bool:
    """Whether some word is another one in each."""
    for start in range(0, len(contents[0]), PIECE):
        pieces = [content[start : start + PIECE] for content in contents]
        if len(set(pieces)) < len(pieces):
            continue
        rows = zip(*(_words(piece) for piece in pieces), strict=True)
        if any(len(set(row)) == len(row) for row in rows):
            return True
    return False


def _words(content: bytes) -> tuple[int, ...]:
    padded = content + bytes(-len(content) % WORD)
    return struct.unpack(f"={len(padded) // WORD}Q", padded)


def _copied(parts: list[tuple[int, int]]) -> Memory:
    return {place: _read(place, size) for place, size in parts}


def _read(place: int, size: int) -> bytes:
    return ctypes.string_at(place, size)


def _word(place: int) -> int:
    return ctypes.c_uint64.from_address(place).value


def _same(place: int, content: bytes) -> bool:
    size = ctypes.c_size_t(len(content))
    return not libc.LIBC.memcmp(ctypes.c_void_p(place), content, size)


def _first(new: bytes, old: bytes) -> int:
    """The place of the first byte that differs."""
    low, high = 0, len(new)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if new[low:middle] == old[low:middle] else (low, middle)
    return low


def _text(descriptor: int) -> str:
    parts, offset = [], 0
    while part := os.pread(descriptor, 1 << 16, offset):
        parts.append(part)
        offset += len(part)
    return b"".join(parts).decode(errors="replace")
