"""The most memory that a run holds at once."""

from collections.abc import Callable
from typing import Any

import torch

MEMORY = "[memory]"  # how the profiler names an allocation, and one that is given back


def peak_bytes(run: Callable[[], Any], device: torch.device) -> int | None:
    """The most that one run holds at once beyond what was held before it, outputs included.

    On CUDA torch's allocator keeps that number. On the CPU it is the running sum of what torch's
    profiler saw allocated and given back, which tells both sides of one process apart where the
    size of the process does not; None where the profiler saw nothing, as beside another one.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        kept = run()
    events = profile.profiler.kineto_results.events() if profile.profiler else []
    del kept
    steps = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == MEMORY)
    held = most = 0
    for _, size in steps:
        held += size
        most = max(most, held)
    return most if steps else None
