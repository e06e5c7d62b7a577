"""The cpu backend: a shared object called in this process, locked before it is loaded."""

import contextlib
import ctypes
import math
import mmap
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import ClassVar

from kernelforge_engine.pool.protocol import Load, PrepareTiming
from kernelforge_engine.runner import openmp
from kernelforge_engine.runner.executor import Binding, image_of, passes, shuffled, unable
from kernelforge_engine.runner.kept import Kept
from kernelforge_engine.sandbox import libc
from kernelforge_engine.sandbox.limits import Limits
from kernelforge_engine.sandbox.lock import Policy, enter

CPU_SECONDS = 600  # for each thread
MODES_CHANGED = (
    "it changed how the processor rounds or what it does with tiny numbers, which would outlast it"
)
WORDS_BYTES = 1 << 20  # what it may write: to its standard output and error, nothing else is open
# A run that can be repeated some times, and by one thread alone; and an arena that can be kept.
QUICK_SECONDS, ALONE_SECONDS, KEPT_BYTES = 0.1, 1.0, 1 << 30
# Cannot be opened once locked.
LIBRARIES = ("libm.so.6", "libmvec.so.1", "libgcc_s.so.1", "libstdc++.so.6")


class _Block(ctypes.Structure):
    _fields_: ClassVar = [("data", ctypes.c_void_p), ("bytes", ctypes.c_ulong)]


class _Sets:
    """Bindings over several buffer sets as the arrays that kf_repeat takes."""

    def __init__(self, order: Load, bases: Sequence[int]) -> None:
        self._bindings = [Binding(order.plan, order.slots, base) for base in bases]
        arrays = [ctypes.addressof(a) for b in self._bindings for a in b.launches]
        blocks = [_Block(*block) for b in self._bindings for block in b.zeroed]
        self._arguments = (ctypes.c_void_p * len(arrays))(*arrays)
        self._zeroed = (_Block * len(blocks))(*blocks)
        self._blocks = len(self._bindings[0].zeroed)
        self.count = len(bases)

    def call(self, repeat: "ctypes._NamedFuncPointer", calls: int) -> None:
        """Execute the plan `calls` times, set after set."""
        repeat(self._arguments, self._zeroed, self._blocks, self.count, calls)


class Cpu:
    """A candidate loaded into this process; `threads` is the OpenMP library, where there is one."""

    def __init__(
        self,
        order: Load,
        arena: int,
        library: ctypes.CDLL,
        threads: ctypes.CDLL | None,
        maps: int | None,
    ) -> None:
        self._order, self._arena, self._threads = order, arena, threads
        layout = order.artifact.resources
        self._kept = Kept(layout, library, maps) if layout and maps is not None else None
        self._watched = self._kept is None or order.arena_bytes > KEPT_BYTES
        self._seconds = math.inf  # the last run took so long
        self._modes = library.kf_modes
        self._modes.argtypes, self._modes.restype = [ctypes.c_void_p], None
        self._repeat = library.kf_repeat
        self._repeat.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_long] * 3
        self._repeat.restype = None
        self._once = _Sets(order, [arena])
        self._memory: list[mmap.mmap] = []
        self._laid: list[list[tuple[int, int, int]]] = []
        self._timed, self._calls = self._once, 1

    def run(self) -> None:
        """Execute the plan once on the arena.

        Once, where it is quick enough, it is executed more often on the same arena, to see whether
        the candidate keeps something; the result is that of the last time.
        """
        if (
            self._kept
            and not self._watched
            and self._seconds <= min(QUICK_SECONDS, ALONE_SECONDS / self._order.threads)
        ):
            self._watched = True
            self._watch(self._kept)
        start = perf_counter_ns()
        self._once.call(self._repeat, 1)
        self._seconds = (perf_counter_ns() - start) / 1e9
        self.check_modes()
        if self._kept:
            self._kept.after(1)

    def _watch(self, kept: Kept) -> None:
        arena = ctypes.string_at(self._arena, self._order.arena_bytes)
        # Kept, for whoever goes on writing there.
        self._memory = _copies(1, len(arena))
        other = _address_of(self._memory[0])

        def laid_and_run(base: int, sets: _Sets) -> None:
            ctypes.memmove(base, arena, len(arena))
            sets.call(self._repeat, 1)

        again = partial(laid_and_run, self._arena, self._once)
        elsewhere = partial(laid_and_run, other, _Sets(self._order, [other]))
        places = (ctypes.c_long * (2 + self._order.threads))()
        self._everywhere(kept.place, ctypes.addressof(places))
        kept.watch(again, elsewhere, places[1 : 1 + places[0]], self._alone)
        ctypes.memmove(self._arena, arena, len(arena))

    def _everywhere(self, function: ctypes.c_void_p, place: int) -> None:
        """Call a C function on every thread, this one first."""
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function.value or 0)(place)
        if self._threads is not None:
            openmp.everywhere(self._threads, self._order.threads, function, place)

    def _alone(self, one: bool) -> None:
        """Whether OpenMP gives the work to one thread."""
        if self._threads is not None:
            openmp.use(self._threads, 1 if one else self._order.threads)

    def prepare(self, order: PrepareTiming) -> None:
        """Copy the arena; page-aligned like the arena itself, so every slot keeps its alignment.

        The last copy is no set: what is restored comes from it.
        """
        self._memory = _copies(order.sets + 1, self._order.arena_bytes)
        bases = [_address_of(memory) for memory in self._memory]
        for base in bases:
            ctypes.memmove(base, self._arena, self._order.arena_bytes)
        own, origin = shuffled(bases[:-1]), bases[-1]
        slots = [self._order.slots[index] for index in order.restored]
        self._laid = [
            [(base + s.offset, origin + s.offset, s.bytes) for s in slots] for base in own
        ]
        self._timed, self._calls = _Sets(self._order, own), order.calls

    def collect(self, index: int) -> None:
        """Copy one buffer set into the arena."""
        base = _address_of(self._memory[index])
        ctypes.memmove(self._arena, base, self._order.arena_bytes)

    def sample(self) -> float:
        """Microseconds per call; one native call runs a whole pass."""
        each = passes(self._timed.count, self._calls)
        self._restore(each[0])
        self._timed.call(self._repeat, each[0])
        taken = 0
        for calls in each:
            self._restore(calls)
            start = perf_counter_ns()
            self._timed.call(self._repeat, calls)
            taken += perf_counter_ns() - start
        self._check_own_modes()
        if self._kept:
            self._kept.after(each[0] + self._calls, sampled=True)
        return taken / 1000 / self._calls

    def _restore(self, sets: int) -> None:
        for slots in self._laid[:sets]:
            for there, origin, size in slots:
                ctypes.memmove(there, origin, size)

    def check_modes(self) -> None:
        """Look at the floating-point modes of every thread, and set them right again.

        Raises:
            Unable: the candidate changed them.
        """
        changed = ctypes.c_int(0)
        if self._threads is not None:
            function = ctypes.cast(self._modes, ctypes.c_void_p)
            place = ctypes.addressof(changed)
            openmp.everywhere(self._threads, self._order.threads, function, place)
        if changed.value:
            raise unable(stage="state", error=MODES_CHANGED)
        self._check_own_modes()

    def _check_own_modes(self) -> None:
        """The same for this thread: the others would go on spinning into the next sample."""
        changed = ctypes.c_int(0)
        self._modes(ctypes.addressof(changed))
        if changed.value:
            raise unable(stage="state", error=MODES_CHANGED)


def load(order: Load, arena: int) -> tuple[Cpu, str]:
    """Lock this process and load the candidate; its constructors run locked as well.

    Returns:
        The candidate, and the isolation reached.
    """
    maps = _maps() if not order.artifact.preload else None
    image = os.memfd_create("candidate")
    os.write(image, image_of(order))
    for name in LIBRARIES:
        with contextlib.suppress(OSError):
            ctypes.CDLL(name)
    threads = openmp.load(order.threads)
    # A sanitizer looks for lines in the file of the program first, and then in the candidate's.
    program = (str(Path(sys.executable).resolve()),) if order.artifact.preload else ()
    policy = Policy(
        read=program,
        native=True,
        lethal=not order.artifact.preload,  # a sanitizer asks for this and that when it reports
        limits=Limits(cpu_seconds=CPU_SECONDS * order.threads, file_bytes=WORDS_BYTES),
    )
    level = enter(policy, partial(openmp.start, threads, order.threads) if threads else None)
    # A memory file is no path that Landlock guards: with it no file at all has to stay readable.
    path = f"/proc/self/fd/{image}"
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise unable(stage="load", error=str(error).removeprefix(f"{path}: ")) from error
    candidate = Cpu(order, arena, library, threads, maps)
    candidate.check_modes()
    if order.artifact.preload:
        _forbid_guards(order, arena)
    else:
        os.close(image)  # a sanitizer reads the lines of a finding from it
    return candidate, level


def _maps() -> int | None:
    """The list of this process's memory, to be read while no file can be opened any more."""
    with contextlib.suppress(OSError):
        return os.open("/proc/self/maps", os.O_RDONLY | os.O_CLOEXEC)
    return None


def _forbid_guards(order: Load, arena: int) -> None:
    """Make an instrumented candidate stop at any access between its buffers."""
    poison = libc.LIBC["__asan_poison_memory_region"]
    poison.argtypes, poison.restype = [ctypes.c_void_p, ctypes.c_size_t], None
    edge = 0
    for slot in order.slots:
        poison(arena + edge, slot.offset - edge)
        edge = slot.offset + slot.bytes
    poison(arena + edge, order.arena_bytes - edge)


def _address_of(memory: mmap.mmap) -> int:
    """Where a writable mapping begins."""
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _copies(number: int, size: int) -> list[mmap.mmap]:
    """Memory for copies of the arena.

    Raises:
        Unable: there is not enough, which is no fault of the candidate.
    """
    # Private like the memory that torch allocates, so that it gets the same page size.
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        return [mmap.mmap(-1, size, flags=kind) for _ in range(number)]
    except OSError as error:
        lack = f"no memory for {number} buffer sets: {error}"
        raise unable(stage="launch", error=lack, ours=True) from error
