"""What a hit costs by itself: guard, output allocation and return, without a kernel."""

import time
from functools import cache
from pathlib import Path
from statistics import median

import torch

from kernelforge_engine.dispatch import shim
from kernelforge_engine.dispatch.guard import arguments_of
from kernelforge_engine.launch.resolve import buffer_sizes
from kernelforge_engine.records import Call, ResolvedPlan

CALLS = 2000
BATCHES = 5


@cache
def _loaded(folder: Path) -> shim.Shim:
    return shim.load(folder)


def hit_us(call: Call, inputs: list[torch.Tensor], folder: Path) -> float:
    """Microseconds of one hit on the cpu backend, called as eager is called when it is timed.

    `inputs` must have the layout of the call; `folder` caches the built shim.
    """
    loaded = _loaded(folder)
    empty = ResolvedPlan(buffers=tuple(buffer_sizes(call)), launches=())
    handle = loaded.add(call, empty)
    try:
        return median(_batch_us(call, inputs) for _ in range(BATCHES))
    finally:
        loaded.remove(handle)


def _batch_us(call: Call, inputs: list[torch.Tensor]) -> float:
    op, args, kwargs = arguments_of(call, inputs)
    with torch.no_grad():
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            op(*args, **kwargs)
        return (time.perf_counter_ns() - start) / 1000.0 / CALLS
