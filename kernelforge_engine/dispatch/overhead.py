"""What a hit costs by itself: guard, output allocation and return, without a kernel."""

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch import shim
from kernelforge_engine.dispatch.guard import arguments_of
from kernelforge_engine.dispatch.standing import served
from kernelforge_engine.launch.resolve import buffer_sizes
from kernelforge_engine.plans import ResolvedPlan

CALLS = 1000
MOST_US = 20_000.0
BATCHES = 5
PAGE = 4096
FROM_THE_SYSTEM = 128 << 10  # bytes from which glibc may take an output from fresh pages


@cache
def _loaded(folder: Path) -> shim.Shim:
    return shim.load(folder)


def hit_us(call: Call, inputs: list[torch.Tensor], kept: int, folder: Path) -> float:
    """Microseconds of one hit on the cpu backend, the best of some batches.

    As when eager is timed, the last `kept` outputs stay alive; the pages of a large output are
    touched, since whoever writes to fresh pages first pays for them. `inputs` must have the layout
    of the call; `folder` caches the built shim.

    A region is called as the model calls it: through Python, by way of what stands in for its
    forward or function.
    """
    loaded = _loaded(folder)
    empty = ResolvedPlan(buffers=tuple(buffer_sizes(call)), launches=())
    if call.region is not None:
        with served(loaded, call, call.region, empty, inputs) as hit:
            return _best_us(call, hit, kept)
    handle = loaded.add(call, empty)
    try:
        op, args, kwargs = arguments_of(call, inputs)
        return _best_us(call, lambda: op(*args, **kwargs), kept)
    finally:
        loaded.remove(handle)


def _best_us(call: Call, hit: Callable[[], Any], kept: int) -> float:
    first = _batch_us(call, hit, kept, 1)
    calls = max(kept, min(CALLS, int(MOST_US / first)))
    return min(_batch_us(call, hit, kept, calls) for _ in range(BATCHES))


def _batch_us(call: Call, hit: Callable[[], Any], kept: int, calls: int) -> float:
    fresh = sum(o.tensor.extent_bytes for o in call.outputs if o.alias is None)
    alive: list[Any] = [None] * kept
    with torch.no_grad():
        start = time.perf_counter_ns()
        for i in range(calls):
            alive[i % kept] = output = hit()
            if fresh >= FROM_THE_SYSTEM:
                _touch(output)
        return (time.perf_counter_ns() - start) / 1000.0 / calls


def _touch(output: Any) -> None:
    for tensor in pytree.tree_leaves(output):
        items = tensor.untyped_storage().nbytes() // tensor.element_size()
        step = PAGE // tensor.element_size()
        tensor.as_strided((-(-items // step),), (step,), 0).fill_(0)
