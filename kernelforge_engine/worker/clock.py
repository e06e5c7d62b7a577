"""Quick timing of an operator while it is captured; comparisons are the Judge's work."""

import math
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from kernelforge_engine.dispatch.graph import mend

BATCHES = 5
BATCH_US = 1000.0
MOST_CALLS = 100
GRAPH_US = 200.0  # what a replay should take, so that its own launch does not count
LONG_US = 2000.0  # a call beside which its launch does not count, so that it needs no graph
FEWEST = 2  # batches after the first one, even if it was slow
LOOK_US = 20_000.0  # what the batches of a call should take together
SLOW_US = 500_000.0  # what the fewest may take
EMPTY = "Graph is empty"  # what torch warns of after a capture in which nothing was launched
WALL_US = 5e6  # what the runs of a whole model may take together

Run = Callable[[], Any]


def call_us(call: Run, device: torch.device) -> float:
    """Microseconds per call: the best of some batches of back-to-back calls, caches warm.

    The best, since a busy machine only ever adds time and this only ranks operators.
    """
    call()
    return _best_us(lambda calls: _batch_us(call, calls, device), MOST_CALLS)


def device_us(call: Run, device: torch.device) -> float:
    """Microseconds of the device per call, without the host where that can be: on CUDA the best of
    some replays of a graph of many calls, or call_us for what no graph can hold; call_us elsewhere.

    `call` runs many times and must leave its inputs as they are, or not mind.
    """
    if device.type != "cuda":
        return call_us(call, device)
    with torch.cuda.device(device):
        call()
        single = _cuda_batch_us(call, 1)
        if single >= LONG_US:
            return _best_us(lambda calls: _cuda_batch_us(call, calls), 1)
        found = _graphed_us(call, max(1, math.ceil(GRAPH_US / single)))
        return call_us(call, device) if found is None else found


def _best_us(batch_us: Callable[[int], float], most_calls: int) -> float:
    """The best of some batches, fewer of a slow call; each has as many calls as the best so far
    makes fit, since a busy machine may have held up the first."""
    best = spent = batch_us(1)
    for done in range(BATCHES):
        calls = max(1, min(most_calls, int(BATCH_US / max(best, 0.1))))
        enough = LOOK_US if done >= FEWEST else SLOW_US
        if spent + best * calls > enough:
            break
        found = batch_us(calls)
        best, spent = min(best, found), spent + found * calls
    return best


def _graphed_us(call: Run, calls: int) -> float | None:
    """The time per call in a graph; None where the operator cannot be captured into one."""
    found = _replayed_us(call, calls)
    if found is None or found * calls >= GRAPH_US / 2 or calls >= MOST_CALLS:
        return found
    # The first guess was made with a time that was mostly the host's.
    longer = min(MOST_CALLS, math.ceil(GRAPH_US / max(found, 0.1)))
    return _replayed_us(call, longer) or found


def _replayed_us(call: Run, calls: int) -> float | None:
    graph, is_empty = _captured(call, calls)
    if graph is None:
        return None
    if is_empty:  # a view, or what gives back its input: the device has nothing to do
        return 0.0
    graph.replay()
    found = min(_cuda_batch_us(graph.replay, 1) for _ in range(BATCHES)) / calls
    graph.reset()
    return found


def _captured(call: Run, calls: int) -> tuple[torch.cuda.CUDAGraph | None, bool]:
    """A graph of `calls` calls, whose outputs share their memory, or None; whether it is empty.

    What waits for the device is found out beforehand: it would break the capture. What a broken
    capture leaves behind is mended.
    """
    if _waits(call):
        return None, False
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                for _ in range(calls):
                    call()
            finally:
                graph.capture_end()
    except RuntimeError:
        mend()
        return None, False
    torch.cuda.current_stream().wait_stream(stream)
    return graph, any(EMPTY in str(warning.message) for warning in said)


def _waits(call: Run) -> bool:
    """Whether a call waits for the device, as one that reads a tensor's value does."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is said to be a prototype that may miss some
        torch.cuda.set_sync_debug_mode("error")
    try:
        call()
    except RuntimeError:
        return True
    finally:
        torch.cuda.set_sync_debug_mode(before)
    return False


def _batch_us(call: Run, calls: int, device: torch.device) -> float:
    if device.type == "cuda":
        return _cuda_batch_us(call, calls)
    start = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - start) / 1000.0 / calls


def _cuda_batch_us(call: Run, calls: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1000.0 / calls


def wall_us(run: Run, runs: int = 5) -> float:
    """Microseconds of one run, the median of up to `runs`, fewer of a slow one; `run` waits for its
    device itself, and must have run before."""
    times: list[float] = []
    while len(times) < runs and sum(times) + (times[-1] if times else 0.0) <= WALL_US:
        start = time.perf_counter_ns()
        run()
        times.append((time.perf_counter_ns() - start) / 1000.0)
    return statistics.median(times)
