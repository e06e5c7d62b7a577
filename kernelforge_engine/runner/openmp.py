"""The OpenMP library of cpu candidates: its threads start before the sandbox closes."""

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

from kernelforge_engine.sandbox import libc

BUNDLED = ("torch/lib/libgomp*.so*", "torch.libs/libgomp*.so*")


def load(threads: int) -> ctypes.CDLL | None:
    """The library, its symbols visible to a candidate; None on a machine that has none.

    The copy bundled with torch comes first: eager runs with it, so a comparison is fair.
    """
    # More threads than exist when the filter is in force could not be started; the library reads
    # this limit once, when it is loaded.
    libc.set_variable("OMP_THREAD_LIMIT", str(threads))
    for name in (*_bundled(), "libgomp.so.1"):
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    return None


def start(library: ctypes.CDLL, threads: int) -> None:
    """Make the library start its threads; they stay for every later parallel region."""
    use(library, threads)
    # free(NULL) is a region without work that touches neither Python nor its lock.
    everywhere(library, threads, ctypes.cast(libc.LIBC.free, ctypes.c_void_p), None)


def use(library: ctypes.CDLL, threads: int) -> None:
    """Give later parallel regions so many threads."""
    library.omp_set_num_threads.argtypes = [ctypes.c_int]
    library.omp_set_num_threads(threads)


def everywhere(
    library: ctypes.CDLL, threads: int, function: ctypes.c_void_p, argument: int | None
) -> None:
    """Call a C function with one pointer on every thread of the library."""
    library.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_uint] * 2
    library.GOMP_parallel(function, argument, threads, 0)


def _bundled() -> Iterator[str]:
    for entry in sys.path:
        for pattern in BUNDLED:
            yield from (str(path) for path in sorted(Path(entry).glob(pattern)))
