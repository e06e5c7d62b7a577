"""Eager's side of a comparison: the call over rotating inputs, timed as the candidate is."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch

from kernelforge_engine.calls import Call
from kernelforge_engine.runner.driver import CudaError, Driver
from kernelforge_engine.worker.invocation import repeated
from kernelforge_engine.worker.tensors import copied, flat


class EagerSide:
    """`calls` calls of the operator or region over `sets` copies of its inputs.

    A sample is made in passes that use each set once, and what a call changes is put back between
    them, so that every call has the same work. Each set's last output stays alive until the set is
    used again, so outputs rotate through memory as the candidate's do. `parameters` are those of
    the inputs that are a model's own: some operators take another path where they are not. On CUDA
    so many `busy_bytes` are filled before a pass that is timed, instead of a pass that is not.
    """

    def __init__(
        self,
        call: Call,
        inputs: Sequence[torch.Tensor],
        sets: int,
        calls: int,
        parameters: Sequence[int] = (),
        busy_bytes: int = 0,
    ) -> None:
        self._device = inputs[0].device
        self._calls, self._pass = calls, min(calls, sets)
        tensors = [_own(inputs, parameters) for _ in range(self._pass)]
        self._bound = [repeated(call, own) for own in tensors]
        self._changed = [(own[i], inputs[i]) for own in tensors for i in call.mutated]
        self._kept: list[Any] = [None] * self._pass
        self.graphed = False
        self._replay: Callable[[], None] = self._loop
        self._reset: Callable[[], None] = self._restore
        self._before: Callable[[], object] | None = None
        if busy_bytes:
            self._before = torch.empty(busy_bytes, dtype=torch.uint8, device=self._device).zero_
        if self._device.type == "cuda":
            self._prepare_cuda()

    def sample(self) -> float:
        """Microseconds per call of one sample, after a pass that is not timed."""
        if self._device.type == "cuda":
            return self._cuda_sample()
        self._restore()
        self._loop()
        taken = 0
        for count in self._passes():
            self._restore()
            start = time.perf_counter_ns()
            self._loop(count)
            taken += time.perf_counter_ns() - start
        return taken / 1000.0 / self._calls

    def _passes(self) -> list[int]:
        """The calls of each pass: all sets, and the rest of them in the last one."""
        whole, rest = divmod(self._calls, self._pass)
        return [self._pass] * whole + [rest] * (rest > 0)

    def _restore(self) -> None:
        with torch.no_grad():
            for tensor, original in self._changed:
                flat(tensor).copy_(flat(original))

    def _loop(self, calls: int | None = None) -> None:
        bound, kept = self._bound, self._kept
        with torch.no_grad():
            for i in range(self._pass if calls is None else calls):
                kept[i] = bound[i]()

    def _prepare_cuda(self) -> None:
        """A graph leaves the host out of short calls; some operators cannot be captured."""
        self._driver = Driver()
        self._loop()
        torch.cuda.synchronize()
        replay = _graphed(self._loop)
        if replay is None:
            return
        self.graphed, self._replay = True, replay
        if self._changed:
            self._reset = _graphed(self._restore) or self._restore

    def _cuda_sample(self) -> float:
        """Whole passes only: on CUDA a sample's calls are a multiple of its sets."""
        passes = self._passes()
        with suppress(CudaError):  # lines that a kernel asked to keep must not help this sample
            self._driver.call("cuCtxResetPersistingL2Cache")
        return sum(self._cuda_pass() for _ in passes) / self._calls

    def _cuda_pass(self) -> float:
        """Microseconds of one pass; another one, untimed, or the work in its place keeps the device
        busy before it."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        (self._before or self._replay)()
        self._reset()
        start.record()
        self._replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1000.0


def _own(inputs: Sequence[torch.Tensor], parameters: Sequence[int]) -> list[torch.Tensor]:
    """Copies of the inputs, the model's own as the parameters that they are there."""
    return [
        torch.nn.Parameter(copied(t)) if i in parameters and t.is_floating_point() else copied(t)
        for i, t in enumerate(inputs)
    ]


def _graphed(work: Callable[[], None]) -> Callable[[], None] | None:
    """What replays the work, None where it cannot be captured."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            work()
    except RuntimeError:
        torch.cuda.synchronize()
        return None
    return graph.replay
