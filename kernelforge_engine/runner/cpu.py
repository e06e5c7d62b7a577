"""The cpu backend: a shared object called in this process, locked before it is loaded."""

import contextlib
import ctypes
import mmap
import os
from collections.abc import Sequence
from functools import partial
from time import perf_counter_ns
from typing import ClassVar

from kernelforge_engine.pool.protocol import Load
from kernelforge_engine.runner import openmp
from kernelforge_engine.runner.executor import Binding, image_of, unable
from kernelforge_engine.sandbox.limits import Limits
from kernelforge_engine.sandbox.lock import Policy, enter

CPU_SECONDS = 600  # for each thread
WORDS_BYTES = 1 << 20  # what it may write: to its standard output and error, nothing else is open
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
    """A candidate loaded into this process."""

    def __init__(self, order: Load, arena: int, library: ctypes.CDLL) -> None:
        self._order, self._arena = order, arena
        self._repeat = library.kf_repeat
        self._repeat.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_long] * 3
        self._repeat.restype = None
        self._once = _Sets(order, [arena])
        self._memory: list[mmap.mmap] = []
        self._timed, self._calls = self._once, 1

    def run(self) -> None:
        """Execute the plan once on the arena."""
        self._once.call(self._repeat, 1)

    def prepare(self, sets: int, calls: int) -> None:
        """Copy the arena; page-aligned like the arena itself, so every slot keeps its alignment."""
        try:
            self._memory = [_private(self._order.arena_bytes) for _ in range(sets)]
        except OSError as error:
            lack = f"no memory for {sets} buffer sets: {error}"
            raise unable(stage="launch", error=lack, ours=True) from error
        bases = [_address_of(memory) for memory in self._memory]
        for base in bases:
            ctypes.memmove(base, self._arena, self._order.arena_bytes)
        self._timed, self._calls = _Sets(self._order, bases), calls

    def collect(self, index: int) -> None:
        """Copy one buffer set into the arena."""
        base = _address_of(self._memory[index])
        ctypes.memmove(self._arena, base, self._order.arena_bytes)

    def sample(self) -> float:
        """Microseconds per call; one native call runs them all."""
        self._timed.call(self._repeat, min(self._calls, self._timed.count))
        start = perf_counter_ns()
        self._timed.call(self._repeat, self._calls)
        return (perf_counter_ns() - start) / 1000 / self._calls


def load(order: Load, arena: int) -> tuple[Cpu, str]:
    """Lock this process and load the candidate; its constructors run locked as well.

    Returns:
        The candidate, and the isolation reached.
    """
    image = os.memfd_create("candidate")
    os.write(image, image_of(order))
    for name in LIBRARIES:
        with contextlib.suppress(OSError):
            ctypes.CDLL(name)
    threads = openmp.load(order.threads)
    policy = Policy(
        native=True,
        limits=Limits(cpu_seconds=CPU_SECONDS * order.threads, file_bytes=WORDS_BYTES),
    )
    level = enter(policy, partial(openmp.start, threads, order.threads) if threads else None)
    # A memory file is no path that Landlock guards: with it no file at all has to stay readable.
    path = f"/proc/self/fd/{image}"
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise unable(stage="load", error=str(error).removeprefix(f"{path}: ")) from error
    os.close(image)
    return Cpu(order, arena, library), level


def _address_of(memory: mmap.mmap) -> int:
    """Where a writable mapping begins."""
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _private(size: int) -> mmap.mmap:
    # Private like the memory that torch allocates, so that it gets the same page size.
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
