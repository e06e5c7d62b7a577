"""How many threads torch works with: all of them where times are compared, one for a small verdict.

A parallel region waits for its last thread. While compilers keep the processors busy that wait is
longer than the work on a small tensor, which a verdict does hundreds of times.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kernelforge_engine.records import Variant

SMALL_BYTES = 2 << 20  # of inputs and outputs together
SHORT_US = 1000.0


class Threads:
    """The threads of this process."""

    def __init__(self) -> None:
        self._kept: int | None = None

    @property
    def given(self) -> int:
        """How many eager has, and a candidate gets, also while few are used."""
        return self._kept or torch.get_num_threads()

    @contextmanager
    def few_for(self, variant: Variant) -> Iterator[None]:
        """One thread while this runs, if the variant's calls are on the CPU, small and short."""
        if variant.call.backend != "cpu" or not _is_small(variant):
            yield
            return
        self._kept = torch.get_num_threads()
        _use(1)
        try:
            yield
        finally:
            _use(self._kept)
            self._kept = None


THREADS = Threads()


def _is_small(variant: Variant) -> bool:
    tensors = (*variant.call.inputs, *(output.tensor for output in variant.call.outputs))
    size = sum(tensor.data_bytes for tensor in tensors)
    return size <= SMALL_BYTES and variant.eager_us <= SHORT_US


def _use(threads: int) -> None:
    """Not `torch.set_num_threads`: that also fixes for good how many threads MKL takes, which
    eager is timed with later. A torch whose OpenMP is out of reach keeps all its threads."""
    library = ctypes.CDLL(None)
    if hasattr(library, "omp_set_num_threads"):
        library.omp_set_num_threads(ctypes.c_int(threads))
