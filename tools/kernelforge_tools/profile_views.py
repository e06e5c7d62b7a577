"""A profile as an agent and a reader of `--json` see it: rounded, without what is not known."""

from kernelforge_engine.profiles import (
    Floor,
    KernelBound,
    LaunchProfile,
    Position,
    Profile,
    Stall,
    position,
)
from kernelforge_engine.records import Node
from kernelforge_tools.answer import View, call
from kernelforge_tools.wording import number_text, rounded

NOT_TIMED = "the node has no timing. Next: {step}"


class StallView(View):
    """Why warps waited, and for which part of their time."""

    reason: str
    share: float


class LaunchView(View):
    """One launch; shares are parts of one."""

    kernel: str
    grid: list[int] | None = None
    block: list[int] | None = None
    cluster: list[int] | None = None
    bound: KernelBound | None = None
    bottleneck: str | None = None
    duration_us: float | None = None
    registers_per_thread: int | None = None
    static_shared_bytes: int | None = None
    dynamic_shared_bytes: int | None = None
    local_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    local_traffic_bytes: int | None = None
    resident_blocks: int | None = None
    waves: float | None = None
    occupancy_theoretical: float | None = None
    occupancy_achieved: float | None = None
    occupancy_limited_by: list[str] | None = None
    dram_read_bytes: int | None = None
    dram_write_bytes: int | None = None
    dram_gb_per_s: float | None = None
    dram_peak_share: float | None = None
    l2_hit_share: float | None = None
    l2_peak_share: float | None = None
    l1_hit_share: float | None = None
    sm_mhz: float | None = None
    sm_active_share: float | None = None
    sm_busy_share: float | None = None
    compute_peak_share: float | None = None
    tensor_pipe_share: float | None = None
    vector_gflop_per_s: float | None = None
    vector_peak_share: float | None = None
    stalls: list[StallView] | None = None

    @classmethod
    def of(cls, launch: LaunchProfile) -> "LaunchView":
        """The figures that are known of a launch."""
        return cls.model_validate({n: _shown(getattr(launch, n)) for n in cls.model_fields})


class RooflineView(View):
    """Where the node's benchmarked time stands: its floor, what that is made of, and how often it
    fits into the time."""

    bound: str
    floor_us: float
    memory_floor_us: float
    compute_floor_us: float | None = None
    bytes: int
    flops: int | None = None
    call_us: float | None = None
    times_floor: float | None = None
    gb_per_s: float | None = None
    memory_share: float | None = None
    gflop_per_s: float | None = None
    compute_share: float | None = None

    @classmethod
    def of(cls, floor: Floor, placed: Position | None) -> "RooflineView":
        """The floor with what is known of the node's calls."""
        measured = vars(placed) if placed else {}
        return cls(
            bound=floor.bound,
            floor_us=rounded(floor.us),
            memory_floor_us=rounded(floor.memory_us),
            compute_floor_us=None if floor.compute_us is None else rounded(floor.compute_us),
            bytes=floor.bytes,
            flops=floor.flops,
            **{name: rounded(value) for name, value in measured.items() if value is not None},
        )


class CodeView(View):
    """The instructions in the object of a cpu node, each counted once."""

    packed_arithmetic: int
    scalar_arithmetic: int
    vector_bits: int


class ProfileView(View):
    """The digest of one binary on one device. What is not there was not measured, and
    `not_measured` says why."""

    node_id: str
    variant_id: str
    device: str
    binary_sha256: str
    summary: str
    roofline: RooflineView
    launches: list[LaunchView]
    left_out: str | None = None
    code: CodeView | None = None
    not_measured: dict[str, str] | None = None
    method: str
    measured_at: float
    seconds: float

    @classmethod
    def of(cls, node: Node, profile: Profile, most: int | None = None) -> "ProfileView":
        """The view of a node's profile, with at most so many of the launches that take longest."""
        placed = position(profile.floor, node.timing.candidate_us) if node.timing else None
        launches = longest(profile, most)
        lacking = dict(profile.not_measured)
        if placed is None:
            lacking["call_us"] = NOT_TIMED.format(step=call("benchmark", node_id=node.id))
        return cls(
            node_id=node.id,
            variant_id=node.variant_id,
            device=profile.device,
            binary_sha256=profile.binary_sha256,
            summary=summary(profile, placed),
            roofline=RooflineView.of(profile.floor, placed),
            launches=[LaunchView.of(launch) for launch in launches],
            left_out=_left_out(len(launches), profile, most),
            code=CodeView(**vars(profile.code)) if profile.code else None,
            not_measured=lacking or None,
            method=profile.method,
            measured_at=profile.measured_at,
            seconds=rounded(profile.seconds),
        )


def longest(profile: Profile, most: int | None) -> list[LaunchProfile]:
    """The launches in order, or so many of those that take longest."""
    launches = list(profile.launches)
    if most is None or len(launches) <= most:
        return launches
    kept = sorted(range(len(launches)), key=lambda i: -(launches[i].duration_us or 0.0))[:most]
    return [launches[index] for index in sorted(kept)]


def summary(profile: Profile, placed: Position | None) -> str:
    """What holds the node back, in one sentence."""
    timed = [launch for launch in profile.launches if launch.duration_us is not None]
    if timed and (worst := max(timed, key=lambda launch: launch.duration_us or 0.0)).bottleneck:
        total = sum(launch.duration_us or 0.0 for launch in timed)
        part = f" ({(worst.duration_us or 0.0) / total:.0%} of the time)" if len(timed) > 1 else ""
        return f"{worst.kernel}{part} is {worst.bottleneck}"
    return _by_roofline(profile, placed)


def _by_roofline(profile: Profile, placed: Position | None) -> str:
    floor = f"its floor of {number_text(profile.floor.us)} us ({profile.floor.bound})"
    if placed is None or placed.times_floor is None:
        return f"how far it is from {floor} was not timed."
    code = profile.code
    scalar = code is not None and code.scalar_arithmetic > 0 == code.packed_arithmetic
    said = (
        f"it takes {placed.times_floor:.3g} times {floor}: it moves its bytes at "
        f"{placed.memory_share:.0%} of the rate of memory"
    )
    if placed.compute_share is not None:
        said += f" and computes at {placed.compute_share:.0%} of that of a matrix product"
    return f"{said}{'; none of its arithmetic is on vectors' if scalar else ''}."


def _shown(value: object) -> object:
    """A figure with the digits it is good for; None for a list that holds nothing."""
    if isinstance(value, Stall):
        return StallView(reason=value.reason, share=rounded(value.share))
    if isinstance(value, tuple):
        return [_shown(part) for part in value] or None
    return rounded(value) if isinstance(value, float) else value


def _left_out(shown: int, profile: Profile, most: int | None) -> str | None:
    """What of the plan is not shown, and where it is."""
    known = len(profile.launches)
    if most is not None and shown < known:
        return f'showing the {shown} longest of {known}; get_node with sections=["profile"] has all'
    if known < profile.planned:
        return f"the first {known} of {profile.planned} launches were profiled"
    return None
