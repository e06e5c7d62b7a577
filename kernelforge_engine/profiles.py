"""What a profile says of a node's kernels on one device, and where that puts its calls under the
roofline of that device.

A figure that could not be measured is None here and left out of every answer, and `not_measured`
says why: a zero was measured. Shares are parts of one.
"""

from dataclasses import dataclass, field
from typing import Literal

from kernelforge_engine.calls import Backend

KernelBound = Literal["memory-bound", "compute-bound", "latency-bound"]


@dataclass(frozen=True, kw_only=True)
class Stall:
    """Why warps waited, as the part of their time that they did."""

    reason: str
    share: float


@dataclass(frozen=True, kw_only=True)
class LaunchProfile:
    """One launch of a plan. What ncu counted is of that launch alone, from cold caches.

    Attributes:
        local_bytes: what a thread has in local memory: arrays that are indexed, and spills.
        resident_blocks: how many of its blocks the whole device holds at a time.
        waves: how many times its grid fills the device; below 1 a part of it is idle.
        occupancy_limited_by: what keeps more blocks from a multiprocessor: registers,
            shared_memory, warps (a block has too many) or blocks (the device's own limit).
        sm_active_share: the part of the time a multiprocessor had any work, over all of them.
        sm_busy_share: how busy the busiest pipe for instructions was while it had.
        compute_peak_share: the same over the whole time, of all that computes.
        local_traffic_bytes: what went to local memory and back.
        vector_gflop_per_s: additions and multiplications outside the tensor cores.
        bound: what holds it back, after the rules of worker.bottleneck.
    """

    kernel: str
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    registers_per_thread: int | None = None
    static_shared_bytes: int | None = None
    dynamic_shared_bytes: int | None = None
    local_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    resident_blocks: int | None = None
    waves: float | None = None
    occupancy_theoretical: float | None = None
    occupancy_limited_by: tuple[str, ...] = ()
    occupancy_achieved: float | None = None
    duration_us: float | None = None
    sm_mhz: float | None = None
    dram_read_bytes: int | None = None
    dram_write_bytes: int | None = None
    dram_gb_per_s: float | None = None
    dram_peak_share: float | None = None
    l2_hit_share: float | None = None
    l2_peak_share: float | None = None
    l1_hit_share: float | None = None
    sm_active_share: float | None = None
    sm_busy_share: float | None = None
    compute_peak_share: float | None = None
    tensor_pipe_share: float | None = None
    vector_gflop_per_s: float | None = None
    vector_peak_share: float | None = None
    local_traffic_bytes: int | None = None
    stalls: tuple[Stall, ...] = ()
    bound: KernelBound | None = None
    bottleneck: str | None = None


@dataclass(frozen=True, kw_only=True)
class Code:
    """What the object of a cpu candidate holds: its floating-point instructions, on vectors and on
    single numbers, and the widest vector any instruction uses (0: none)."""

    packed_arithmetic: int
    scalar_arithmetic: int
    vector_bits: int


@dataclass(frozen=True, kw_only=True)
class Floor:
    """The least a call can take on the device: its bytes at the rate that memory gives, its flops
    at the rate of a large matrix product. None where the call has no flops that anybody counted."""

    bytes: int
    memory_us: float
    flops: int | None = None
    compute_us: float | None = None

    @property
    def us(self) -> float:
        return max(self.memory_us, self.compute_us or 0.0)

    @property
    def bound(self) -> Literal["memory-bound", "compute-bound"]:
        """What it is made of."""
        return "compute-bound" if (self.compute_us or 0.0) > self.memory_us else "memory-bound"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The digest of one binary on one device; `launches` are the first ones of `planned`."""

    backend: Backend
    device: str
    binary_sha256: str
    plan_sha256: str
    method: str
    planned: int
    launches: tuple[LaunchProfile, ...]
    floor: Floor
    code: Code | None = None
    not_measured: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    measured_at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Position:
    """Where a measured call stands under the roofline: `times_floor` is how often its floor fits
    into its time, and shares are of what the device gives."""

    call_us: float
    times_floor: float | None
    gb_per_s: float
    memory_share: float
    gflop_per_s: float | None = None
    compute_share: float | None = None


def position(floor: Floor, call_us: float) -> Position:
    """The position of a call that takes so long."""
    return Position(
        call_us=call_us,
        times_floor=call_us / floor.us if floor.us else None,
        gb_per_s=floor.bytes / call_us / 1e3,
        memory_share=floor.memory_us / call_us,
        gflop_per_s=None if floor.flops is None else floor.flops / call_us / 1e3,
        compute_share=None if floor.compute_us is None else floor.compute_us / call_us,
    )
