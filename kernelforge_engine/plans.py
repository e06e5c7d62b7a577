"""Launch plans as frozen data: what a launch header declares, and the numbers it comes to."""

from dataclasses import dataclass
from typing import Literal

from kernelforge_engine.calls import Backend

MAX_SOURCE_BYTES = 256 * 1024


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
