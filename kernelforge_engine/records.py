"""The nouns of Kernel Forge as frozen data: what is stored, sent between processes and shown.

Times are microseconds per call.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from kernelforge_engine.calls import Backend, Call, Json


@dataclass(frozen=True, kw_only=True)
class Inner:
    """One operator inside a region: how often one call of the region runs it, and its time."""

    operator: str
    calls: int
    us: float


@dataclass(frozen=True, kw_only=True)
class Member:
    """A variant of a shape family: the values of the family's symbols, and what was measured."""

    sizes: tuple[int, ...]
    call: Call
    calls: int
    eager_us: float
    floor_us: float
    examples: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Family:
    """Variants that differ only in sizes that were seen to vary.

    Attributes:
        symbols: names of the varying sizes, as "s0".
        fits: for every integer of a call (see sizes.numbers) its value as
            constant + sum of coefficient x symbol: (constant, coefficient of s0, ...).
        members: the variants it was fitted on, by size.
        held_out: sizes inside the validated range that no member has; candidates are judged there.
    """

    symbols: tuple[str, ...]
    fits: tuple[tuple[int, ...], ...]
    members: tuple[Member, ...]
    held_out: tuple[tuple[int, ...], ...]

    @property
    def dearest(self) -> Member:
        """The member whose calls take the most time, of those that have an example."""
        return max(self.members, key=lambda m: (bool(m.examples), m.calls * m.eager_us))

    def named(self, sizes: tuple[int, ...]) -> str:
        """Values of the symbols as people read them: s0 = 13."""
        pairs = zip(self.symbols, sizes, strict=True)
        return ", ".join(f"{symbol} = {size}" for symbol, size in pairs)


@dataclass(frozen=True, kw_only=True)
class Details:
    """What a capture knows of a variant beside its call and its times.

    Attributes:
        parameters: which inputs are parameters or buffers of the model.
        inside: of a region, the operators it runs.
        within: of a region, the regions that hold it: their shares overlap.
        launches: kernels that one eager call launches, None where that was not counted.
        requires: what registers its operators, importable where torch alone does not have them.
        family: of a shape family, its members; `call` is then the dearest of them.
    """

    bytes: int = 0
    flops: int = 0
    parameters: tuple[int, ...] = ()
    inside: tuple[Inner, ...] = ()
    within: tuple[str, ...] = ()
    launches: int | None = None
    requires: str | None = None
    family: Family | None = None


@dataclass(frozen=True, kw_only=True)
class Variant(Details):
    """Calls that share one key, with what a capture measured about them.

    Attributes:
        share: its part of the time all operators took; of a region, that of the operators inside.
        floor_us: the least time its bytes and flops need on the machine it was captured on.
        module: path and class of the module that called it first.
        reason: why it is not a target, or None.
        examples: blob names of its inputs, per example; see worker.tensors.fetch.
    """

    id: str
    card_id: str
    call: Call
    calls: int
    eager_us: float
    share: float
    floor_us: float
    module: str
    target: bool
    reason: str | None
    examples: tuple[tuple[str, ...], ...] = ()

    @property
    def headroom(self) -> float:
        return self.eager_us / self.floor_us if self.floor_us > 0 else 1.0

    @property
    def gain(self) -> float:
        """The part of all operator time that a kernel at the floor would save."""
        return self.share * (1 - 1 / max(self.headroom, 1.0))


@dataclass(frozen=True, kw_only=True)
class Card:
    """One operator of a capture; `variants` are ordered by share, families after them.

    `wall_share` is its part of the model's own time, None where that was not measured. Totals count
    each call once: families repeat calls of exact variants, regions those of other cards.
    """

    id: str
    capture_id: str
    operator: str
    calls: int
    total_us: float
    share: float
    headroom: float
    variants: tuple[Variant, ...]
    wall_share: float | None = None

    @property
    def is_region(self) -> bool:
        return self.operator.startswith("region::")

    @property
    def gain(self) -> float:
        """The part of all operator time that kernels at the floor would save."""
        return self.share * (1 - 1 / max(self.headroom, 1.0))


WITHIN_MARGIN = "within the margin"  # how a reason ends that another benchmark does not change
DISTURBED = 1.5  # times the model's own clock

Bound = Literal["launch-bound", "memory-bound", "compute-bound"]


@dataclass(frozen=True, kw_only=True)
class Capture:
    """One recorded run of a model.

    Attributes:
        model: what was loaded, as FILE.py:make_model.
        inputs: the input sets it ran on, one run each.
        wall_us: the model's clock over all input sets, None where it could not be run unobserved.
        busy_us: the sum over its operators.
        bound: what holds the model back, None where wall_us is not known.
        output_drift: how far observing moved the output, None where two runs cannot be compared.
        level: `whole` operators, or `decomposed` ones where the forward needs autograd.
        coverage: the part of an unobserved run's operator calls that was recorded, or None.
        unseen: calls that an unobserved run made and the recorded one did not, by operator.
        error: what the model raised when it was recorded; what came before is kept.
        stored_bytes: what its example tensors added to the project folder.
        random_weights, dtype, generate_tokens: how the model was loaded; see ModelRequest.
        load_per_thread: how many processes wanted each thread of the machine before it was
            captured, None where that is not on record.
    """

    id: str
    model: str
    inputs: tuple[str, ...]
    device: str
    device_name: str
    torch_version: str
    wall_us: float | None
    busy_us: float
    calls: int
    output_drift: float | None
    created_at: float
    bound: Bound | None = None
    level: Literal["whole", "decomposed"] = "whole"
    coverage: float | None = None
    unseen: dict[str, int] = field(default_factory=dict)
    error: str | None = None
    stored_bytes: int = 0
    random_weights: bool = False
    dtype: str | None = None
    generate_tokens: int = 0
    load_per_thread: float | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether its operators took so much longer than the model itself that other work must have
        got into their timings; streams that overlap explain less than that."""
        return bool(self.wall_us) and self.busy_us > DISTURBED * (self.wall_us or 0.0)

    @property
    def believed_bound(self) -> Bound | None:
        """What holds the model back, None where disturbed times cannot tell."""
        return None if self.is_disturbed else self.bound


class Status(StrEnum):
    """What the engine found about a candidate."""

    VALID = "valid"
    REJECTED_SOURCE = "rejected_source"
    COMPILE_FAILED = "compile_failed"
    LAUNCH_FAILED = "launch_failed"
    KEEPS_STATE = "keeps_state"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    WRONG_STRUCTURE = "wrong_structure"
    WRONG_VALUES = "wrong_values"
    MEMORY_VIOLATION = "memory_violation"
    MUTATED_INPUT = "mutated_input"
    NONDETERMINISTIC = "nondeterministic"


# How thoroughly a candidate is judged.
Tier = Literal["quick", "full", "promotion"]


class Outcome(StrEnum):
    """What a benchmark concluded."""

    FASTER = "faster"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"
    IMPLAUSIBLE = "implausible"


class Label(StrEnum):
    """Who does the work of a node: its own kernels, a library, or eager.

    Eager itself is the root of a tree. A candidate cannot be a wrapper: a plan launches nothing but
    kernels of its own source, and a build that needs a library which could do the work, or another
    function than mathematics on single numbers, memory and OpenMP, is refused. What a build holds
    and needs stands in the verdict's evidence, under `audit`.
    """

    GENERATED = "generated"
    WRAPPER = "wrapper"
    FALLBACK = "fallback"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The value returned for a candidate. `evidence` names draws, rules and measured ratios, never
    the values of a draw."""

    status: Status
    reason: str
    log: str = ""
    evidence: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SizeTiming:
    """A paired comparison with eager at one member of a shape family."""

    sizes: tuple[int, ...]
    outcome: Outcome
    speedup: float
    low: float
    high: float
    eager_us: float
    candidate_us: float


@dataclass(frozen=True, kw_only=True)
class Timing:
    """A paired comparison with eager: `speedup` = eager/candidate with its interval, at the level
    `confidence` in `evidence`. A win is the second of two that agree; `why` says what decided.

    Of a shape family it is that of the dearest member; `sizes` has every member that was timed.
    """

    outcome: Outcome
    speedup: float
    low: float
    high: float
    eager_us: float
    candidate_us: float
    scope: str
    evidence: dict[str, Json] = field(default_factory=dict)
    sizes: tuple[SizeTiming, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A built candidate. `symbols` maps each kernel name of the plan to the symbol to load.

    `resources` has, on CUDA, registers and local memory of each kernel, and on the cpu backend the
    places of its writable memory. `audit` is what it holds: its kernels, and what it needs of
    others.
    `preload` has the libraries that an instrumented build needs before all others; an ordinary
    build has none. `made_by` is everything about the compiler that can change what it makes.
    """

    digest: str
    backend: Backend
    arch: str
    path: str
    symbols: dict[str, str]
    compiler: str
    log: str = ""
    resources: dict[str, Json] = field(default_factory=dict)
    audit: dict[str, Json] = field(default_factory=dict)
    preload: tuple[str, ...] = ()
    made_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A valid candidate in a revision tree; the root of a tree is eager itself, without source."""

    id: str
    variant_id: str
    parent_id: str | None
    source_digest: str | None
    artifact_digest: str | None
    label: Label
    author: str
    note: str
    visits: int
    timing: Timing | None
    verdict: Verdict | None
    created_at: float


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A parent handed to one agent for one proposal; it holds a virtual visit until it ends.

    It ends when a proposal under it is valid, expires, or cannot be mended any more: `repairs_left`
    is how often one that failed may still be.
    """

    id: str
    variant_id: str
    parent_id: str
    holder: str
    policy: str
    expires_at: float
    repairs_left: int
