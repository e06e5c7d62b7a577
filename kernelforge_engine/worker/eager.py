"""Eager's side of a comparison: the call over rotating inputs, timed as the candidate is."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernelforge_engine.calls import Call
from kernelforge_engine.worker.below import below_autograd
from kernelforge_engine.worker.invocation import repeated
from kernelforge_engine.worker.tensors import copied


class EagerSide:
    """`calls` calls of the operator or region over `sets` copies of its inputs.

    Each set's last output stays alive until the set is used again, so outputs rotate through memory
    as the candidate's do.
    """

    def __init__(self, call: Call, inputs: Sequence[torch.Tensor], sets: int, calls: int) -> None:
        self._device = inputs[0].device
        self._calls, self._sets = calls, sets
        self._bound = [repeated(call, [copied(t) for t in inputs]) for _ in range(sets)]
        self._kept: list[Any] = [None] * sets
        self.graphed = False
        self._replay: Callable[[], None] = self._loop
        if self._device.type == "cuda":
            self._prepare_cuda()

    def sample(self) -> float:
        """Microseconds per call of one sample, after one that is not timed."""
        if self._device.type == "cuda":
            return self._cuda_sample()
        self._loop(min(self._calls, self._sets))
        start = time.perf_counter_ns()
        self._loop(self._calls)
        return (time.perf_counter_ns() - start) / 1000.0 / self._calls

    def _loop(self, calls: int | None = None) -> None:
        bound, kept, sets = self._bound, self._kept, self._sets
        with torch.no_grad(), below_autograd():
            for i in range(self._calls if calls is None else calls):
                kept[i % sets] = bound[i % sets]()

    def _prepare_cuda(self) -> None:
        """A graph leaves the host out of short calls; some operators cannot be captured."""
        self._loop(self._sets)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._loop()
        except RuntimeError:
            torch.cuda.synchronize()
            return
        self.graphed = True
        self._replay = graph.replay

    def _cuda_sample(self) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._replay()
        start.record()
        self._replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1000.0 / self._calls
