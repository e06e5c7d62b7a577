"""What holds a launch back, from its counters and three rules.

1. What runs at BUSY of its peak or more is the bound, the busiest first: device memory, the L2
   cache, the tensor cores, or all that computes. NVIDIA's own guides draw the line there. The L2
   cache counts only where device memory is below that: all that goes there passes through it.
2. Where nothing does, the launch waits. If its grid does not even fill the device once, that is
   said; if fewer than half of the places for warps can be taken, what limits them is.
3. What its warps waited for most is said as well, where that is FELT of their time or more. That
   others of them were ready too is no lack.
"""

from kernelforge_engine.profiles import KernelBound, LaunchProfile

BUSY = 0.6
FEW = 0.5
FELT = 0.2
READY = "not_selected"
PEAKS: tuple[tuple[str, KernelBound, str], ...] = (
    ("dram_peak_share", "memory-bound", "device memory"),
    ("l2_peak_share", "memory-bound", "the L2 cache"),
    ("tensor_pipe_share", "compute-bound", "the tensor cores"),
    ("compute_peak_share", "compute-bound", "the multiprocessors' instruction pipes"),
)
WAITS = {
    "barrier": "for other warps of their block at a barrier",
    "branch_resolving": "for branches to be decided",
    "dispatch_stall": "to be dispatched",
    "drain": "for their last stores",
    "gmma": "for matrix products of warp groups",
    "imc_miss": "for constants",
    "lg_throttle": "to issue loads and stores: many small ones are under way",
    "long_scoreboard": "for loads from device memory, L2 or local memory",
    "math_pipe_throttle": "for a busy arithmetic pipe",
    "membar": "at memory fences",
    "mio_throttle": "to issue shared-memory and special-function instructions",
    "no_instruction": "for instructions to be fetched",
    "short_scoreboard": "for shared memory or special functions",
    "sleeping": "asleep",
    "tex_throttle": "for the texture pipe",
    "wait": "for the fixed latency of their own last instruction",
}


def bound(launch: LaunchProfile) -> KernelBound | None:
    """The bound, or None where too little was counted to say."""
    if any(getattr(launch, name) is None for name, _, _ in PEAKS):
        return None
    share, kind, _ = _peaks(launch)[0]
    return kind if share >= BUSY else "latency-bound"


def sentence(launch: LaunchProfile) -> str | None:
    """The bound in words with the figures it rests on, or None where there is none."""
    kind = bound(launch)
    if kind is None:
        return None
    share, _, what = _peaks(launch)[0]
    if kind == "latency-bound":
        said = f"nothing is near its peak (closest: {what}, at {share:.0%}; {BUSY:.0%} would be a "
        said += f"bound){_places(launch)}"
    else:
        said = f"{what} ran at {share:.0%} of peak, and {BUSY:.0%} or more is a bound"
    return f"{kind}: {said}{_waiting(launch)}{_spilling(launch)}."


def _peaks(launch: LaunchProfile) -> list[tuple[float, KernelBound, str]]:
    """What has a peak, the busiest first, where all of it was counted."""
    passed = (launch.dram_peak_share or 0.0) >= BUSY
    counted = [entry for entry in PEAKS if not (passed and entry[0] == "l2_peak_share")]
    found = [(getattr(launch, name), kind, what) for name, kind, what in counted]
    return sorted(found, key=lambda entry: -entry[0])


def _places(launch: LaunchProfile) -> str:
    """Why there are few warps to choose from."""
    if launch.waves is not None and launch.waves < 1:
        taken = f"{100 * launch.waves:.2g}%"
        return f"; its grid takes {taken} of the places for blocks: make more of them"
    possible = launch.occupancy_theoretical
    if possible is not None and possible < FEW:
        by = " and ".join(launch.occupancy_limited_by).replace("_", " ")
        limit = f", limited by {by}" if by else ""
        return f"; at most {possible:.0%} of the places for warps can be taken{limit}"
    return ""


def _waiting(launch: LaunchProfile) -> str:
    waits = [stall for stall in launch.stalls if stall.reason != READY and stall.share >= FELT]
    if not waits:
        return ""
    first = waits[0]
    reason = WAITS.get(first.reason, f"({first.reason})")
    return f"; {first.share:.0%} of their time its warps waited {reason}"


def _spilling(launch: LaunchProfile) -> str:
    if not launch.spill_load_bytes and not launch.spill_store_bytes:
        return ""
    stored, loaded = launch.spill_store_bytes or 0, launch.spill_load_bytes or 0
    return f"; it is short of registers: a thread spills {stored} bytes and reads back {loaded}"
