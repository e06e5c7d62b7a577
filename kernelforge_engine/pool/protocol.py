"""The messages between processes: frozen records, one JSON frame each, told apart by `kind`.

Builder  Build -> Built | BuildRefused | Raised
Runner   Begin -> Done | Failed; Load -> Loaded | Failed; Run -> Done | Failed;
         PrepareTiming -> Done | Failed; Sample -> Sampled | Failed; Collect -> Done | Failed
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from kernelforge_engine import errors
from kernelforge_engine.calls import Backend, Json
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.records import Artifact


@dataclass(frozen=True, kw_only=True)
class Raised:
    """An error of ours raised in a child, to be raised again in the parent."""

    name: str
    fields: dict[str, Json]
    kind: Literal["raised"] = "raised"

    @classmethod
    def of(cls, error: errors.KernelForgeError) -> "Raised":
        """The message for an error."""
        fields: dict[str, Json] = {}
        for name, value in error.fields.items():
            fields[name] = value if isinstance(value, int | float) else str(value)
        return cls(name=type(error).__name__, fields=fields)

    def error(self) -> errors.KernelForgeError:
        """The error again."""
        kind = getattr(errors, self.name, errors.KernelForgeError)
        error: errors.KernelForgeError = kind(**self.fields)
        return error


@dataclass(frozen=True, kw_only=True)
class Build:
    """Compile `text`; the artifact and its metadata are put into `folder` under their digest.

    `arch` is "sm_90" and the like on CUDA, "native" on the cpu backend. `launches` has the kernel
    name and the argument kinds of each launch of the plan: the checks of both backends and the
    trampolines of the cpu backend are generated from them. `sanitized` asks for a build that checks
    every access of its own, on the cpu backend only.
    """

    text: str
    backend: Backend
    arch: str
    launches: tuple[tuple[str, tuple[str, ...]], ...]
    folder: str
    sanitized: bool = False
    kind: Literal["build"] = "build"


@dataclass(frozen=True, kw_only=True)
class Built:
    """The build worked; `seconds` is 0.0 when it came from the store of artifacts.

    `sandbox` names the isolation the compiler ran in; it is empty when nothing was compiled.
    """

    artifact: Artifact
    seconds: float
    sandbox: str = ""
    kind: Literal["built"] = "built"


@dataclass(frozen=True, kw_only=True)
class BuildRefused:
    """The compiler refused the source: `log` has its first errors, without host paths."""

    log: str
    seconds: float
    kind: Literal["build_refused"] = "build_refused"


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Where a buffer of the plan lies in the arena, in bytes."""

    offset: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Begin:
    """Do what has to be done before any candidate: start the device of a CUDA Runner."""

    backend: Backend
    device: int = 0
    kind: Literal["begin"] = "begin"


@dataclass(frozen=True, kw_only=True)
class Load:
    """Load an artifact and bind its plan to the arena, a memory file that both sides map: its
    descriptor follows this message.

    `slots` has one entry per buffer of the plan; everything between slots is guard band. `shared`
    is the hexadecimal CUDA IPC handle of an arena that lies in device memory, or empty: then the
    arena is the memory file, and a CUDA Runner copies it to its device and back.
    """

    artifact: Artifact
    plan: ResolvedPlan
    slots: tuple[Slot, ...]
    arena_bytes: int
    device: int = 0
    threads: int = 1
    shared: str = ""
    kind: Literal["load"] = "load"


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The candidate is loaded; `sandbox` names the isolation reached."""

    sandbox: str
    kind: Literal["loaded"] = "loaded"


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Launch a CUDA candidate's plan on memory of its own, a buffer an allocation, once for each of
    `draws`: the files that hold the inputs' bytes. `shifts` says, for every buffer, how many bytes
    behind an aligned address it begins."""

    artifact: Artifact
    plan: ResolvedPlan
    shifts: tuple[int, ...]
    draws: tuple[tuple[str, ...], ...]
    device: int = 0
    kind: Literal["rehearsal"] = "rehearsal"


@dataclass(frozen=True, kw_only=True)
class Residency:
    """What a thread and a block of one launch take on a CUDA device, how many of its blocks fit on
    a multiprocessor and on all of them, and how many each resource has room for (`limits`)."""

    registers: int
    static_shared_bytes: int
    local_bytes: int
    blocks_per_multiprocessor: int
    resident_blocks: int
    multiprocessors: int
    warps_per_block: int
    most_warps: int
    limits: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """How the launches of a Rehearsal fit on their device, which nothing of them ran on."""

    launches: tuple[Residency, ...]
    kind: Literal["inspected"] = "inspected"


@dataclass(frozen=True, kw_only=True)
class Isolate:
    """Lock yourself up as a Runner does, and try what must fail."""

    kind: Literal["isolate"] = "isolate"


@dataclass(frozen=True, kw_only=True)
class Isolated:
    """The isolation this machine gives, and what still worked in it (see sandbox.witness)."""

    level: str
    open: tuple[str, ...]
    kind: Literal["isolated"] = "isolated"


@dataclass(frozen=True, kw_only=True)
class Run:
    """Execute the plan once on the arena as it is now and leave the result in it."""

    kind: Literal["run"] = "run"


@dataclass(frozen=True, kw_only=True)
class PrepareTiming:
    """Copy the arena into `sets` rotating buffer sets; a sample makes `calls` calls over them, in
    passes that use each set once.

    Before every pass the slots `restored` hold what the arena held, so that no call finds the
    output of an earlier one, or inputs that one changed. On CUDA so many `busy_bytes` are filled
    before a pass that is timed, instead of a pass that is not.
    """

    sets: int
    calls: int
    restored: tuple[int, ...] = ()
    busy_bytes: int = 0
    kind: Literal["prepare_timing"] = "prepare_timing"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Time one sample of back-to-back calls, after a pass that is not timed."""

    kind: Literal["sample"] = "sample"


@dataclass(frozen=True, kw_only=True)
class Collect:
    """Copy buffer set `index` into the arena, as the samples left it."""

    index: int
    kind: Literal["collect"] = "collect"


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Microseconds per call of one sample."""

    us: float
    kind: Literal["sampled"] = "sampled"


@dataclass(frozen=True, kw_only=True)
class Done:
    """The command finished."""

    kind: Literal["done"] = "done"


Stage = Literal["load", "launch", "state"]


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The command failed in a way the Runner survived long enough to name.

    `stage` is what could not be done, or "state" where it kept something; `fault` marks an illegal
    address that the device itself reported; `ours` marks a lack of the machine (no driver, no
    memory), which says nothing of the candidate.
    """

    stage: Stage
    error: str
    fault: bool = False
    ours: bool = False
    kind: Literal["failed"] = "failed"


BuilderReply = Annotated[Built | BuildRefused | Raised, Field(discriminator="kind")]
RunnerCommand = Annotated[
    Begin | Load | Run | PrepareTiming | Sample | Collect, Field(discriminator="kind")
]
RunnerReply = Annotated[Loaded | Done | Sampled | Failed, Field(discriminator="kind")]
