"""The nouns of Kernel Forge as frozen data: what is stored, sent between processes and shown.

Sizes are in elements unless a name says bytes; times are microseconds per call.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from math import prod
from typing import Literal

from pydantic import JsonValue

Json = JsonValue
Backend = Literal["cpu", "cuda"]

ITEM_BYTES = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TensorSpec:
    """The metadata of one dense tensor; `aligned`: its data pointer is a multiple of 16 bytes."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: str
    aligned: bool = True

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def extent(self) -> int:
        """Elements from the first to the last one addressed, gaps between strides included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))

    @property
    def extent_bytes(self) -> int:
        return self.extent * ITEM_BYTES[self.dtype]

    @property
    def data_bytes(self) -> int:
        """Bytes that must be moved at least once: an expanded dimension is read once."""
        unique = prod(n for n, s in zip(self.shape, self.stride, strict=True) if s)
        return unique * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, kw_only=True)
class OutputSpec:
    """One returned tensor; `alias` is the index of the input it is written into, or None."""

    tensor: TensorSpec
    alias: int | None = None


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One schema argument: plain JSON, with tensors as {"tensor": index into the inputs}, and
    {"dtype": name}, {"memory_format": name}, {"layout": name}, {"float": "inf"} for the rest."""

    name: str
    value: Json


@dataclass(frozen=True, kw_only=True)
class Call:
    """One operator with its whole argument list: the identity of a variant.

    `words` are the guard words (unsigned 64-bit) that the dispatch shim computes from a live call.
    """

    operator: str
    overload: str
    words: tuple[int, ...]
    arguments: tuple[Argument, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[OutputSpec, ...]
    mutated: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return self.operator + (f".{self.overload}" if self.overload else "")

    @property
    def backend(self) -> Backend:
        return "cuda" if any(t.device == "cuda" for t in self.inputs) else "cpu"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Calls that share one key, with what a capture measured about them."""

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


@dataclass(frozen=True, kw_only=True)
class Card:
    """One operator of a capture; `variants` are ordered by share."""

    id: str
    capture_id: str
    operator: str
    calls: int
    total_us: float
    share: float
    headroom: float
    variants: tuple[Variant, ...]


@dataclass(frozen=True, kw_only=True)
class Capture:
    """One recorded run of a model. `busy_us` sums the operators; `wall_us` is the model's clock;
    `output_drift` is how far observing moved the output, None where two runs cannot be compared."""

    id: str
    file: str
    factory: str
    inputs: str
    device: str
    device_name: str
    torch_version: str
    wall_us: float
    busy_us: float
    calls: int
    output_drift: float | None
    created_at: float


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One `[[launch]]` entry; every size and typed argument is an expression, still in text."""

    kernel: str
    args: tuple[str, ...]
    grid: tuple[str, str, str] = ("1", "1", "1")
    block: tuple[str, str, str] = ("1", "1", "1")
    shared: str = "0"
    cluster: tuple[str, str, str] | None = None
    cooperative: bool = False


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A scratch buffer the engine allocates: `bytes` is an expression."""

    name: str
    bytes: str
    zero: bool = False


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """A parsed launch header."""

    lets: tuple[tuple[str, str], ...]
    launches: tuple[Launch, ...]
    workspaces: tuple[Workspace, ...] = ()
    zeroed_outputs: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Source:
    """A candidate: its text, the backend it is for and the plan its header declares."""

    text: str
    backend: Backend
    plan: LaunchPlan
    digest: str


ArgumentKind = Literal["buffer", "i32", "i64", "f32", "f64"]


@dataclass(frozen=True, kw_only=True)
class ResolvedArgument:
    """A kernel argument with its value; for "buffer" the value indexes `ResolvedPlan.buffers`."""

    kind: ArgumentKind
    value: int | float


@dataclass(frozen=True, kw_only=True)
class ResolvedLaunch:
    """One launch with every expression evaluated."""

    kernel: str
    args: tuple[ResolvedArgument, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    cluster: tuple[int, int, int] | None = None
    cooperative: bool = False


BufferRole = Literal["input", "output", "workspace"]


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """One memory block of a call; `index` counts within its role; `zero`: cleared before launch."""

    role: BufferRole
    index: int
    bytes: int
    zero: bool = False


@dataclass(frozen=True, kw_only=True)
class ResolvedPlan:
    """What Runner, benchmark and package all launch. Buffers are the inputs in schema order, then
    the fresh outputs, then the workspaces; an output that aliases an input has no buffer."""

    buffers: tuple[Buffer, ...]
    launches: tuple[ResolvedLaunch, ...]


class Status(StrEnum):
    """What the engine found about a candidate."""

    VALID = "valid"
    REJECTED_SOURCE = "rejected_source"
    COMPILE_FAILED = "compile_failed"
    LAUNCH_FAILED = "launch_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    WRONG_STRUCTURE = "wrong_structure"
    WRONG_VALUES = "wrong_values"
    MEMORY_VIOLATION = "memory_violation"
    MUTATED_INPUT = "mutated_input"
    NONDETERMINISTIC = "nondeterministic"


class Outcome(StrEnum):
    """What a benchmark concluded."""

    FASTER = "faster"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"
    IMPLAUSIBLE = "implausible"


class Label(StrEnum):
    """Who does the work of a node: its own kernels, a library, or eager."""

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
class Timing:
    """A paired comparison with eager: `speedup` = eager/candidate with its 99 % interval."""

    outcome: Outcome
    speedup: float
    low: float
    high: float
    eager_us: float
    candidate_us: float
    scope: str
    evidence: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A built candidate. `symbols` maps each kernel name of the plan to the symbol to load."""

    digest: str
    backend: Backend
    arch: str
    path: str
    symbols: dict[str, str]
    compiler: str
    log: str = ""
    resources: dict[str, Json] = field(default_factory=dict)


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
    """A parent handed to one agent for one proposal; it holds a virtual visit until it ends."""

    id: str
    variant_id: str
    parent_id: str
    holder: str
    policy: str
    expires_at: float
