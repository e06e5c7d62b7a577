"""Quick timing of an operator while it is captured; comparisons are the Judge's work."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

BATCHES = 5
BATCH_US = 1000.0
MOST_CALLS = 100


def call_us(call: Callable[[], Any], device: torch.device) -> float:
    """Microseconds per call: the best of some batches of back-to-back calls, caches warm.

    The best, since a busy machine only ever adds time and this only ranks operators.
    """
    call()
    first = _batch_us(call, 1, device)
    calls = max(1, min(MOST_CALLS, int(BATCH_US / max(first, 0.1))))
    return min(_batch_us(call, calls, device) for _ in range(BATCHES))


def _batch_us(call: Callable[[], Any], calls: int, device: torch.device) -> float:
    if device.type == "cuda":
        return _cuda_batch_us(call, calls)
    start = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - start) / 1000.0 / calls


def _cuda_batch_us(call: Callable[[], Any], calls: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1000.0 / calls


def wall_us(run: Callable[[], Any], runs: int = 5) -> float:
    """Microseconds of one run, the median of several; `run` waits for its device itself."""
    run()
    times = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        run()
        times.append((time.perf_counter_ns() - start) / 1000.0)
    return statistics.median(times)
