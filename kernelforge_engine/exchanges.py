"""What a caller asks of the engine and gets back, as frozen data. Times are microseconds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kernelforge_engine import limits
from kernelforge_engine.calls import Backend, Json
from kernelforge_engine.measurements import SECONDS, Mode, WholeModel
from kernelforge_engine.plans import MAX_SOURCE_BYTES
from kernelforge_engine.records import Label, Node, Outcome, Status, Tier, Verdict


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a piece of work is: `done` of `total`, with a few words on what goes on."""

    done: int
    total: int
    text: str


Notice = Callable[[Progress], None]
MAX_NOTE_BYTES = 2000


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where the project lives and what children may see.

    Attributes:
        project: the project folder, made when it is missing.
        environment: the whole environment of every child process.
        cache: where built shims and other rebuildable files are kept.
        max_bytes: the largest sum of example tensors a capture may store.
        quota_bytes: the size at which the project folder takes no more captures, candidates and
            records, or None.
        require_sandbox: whether candidates run only where nothing is left open to them.
        prices: the user's own price table.
        secrets: values of the environment that are credentials: no text may hold one.
        home: the user's home, whose name no text of an error or a log holds.
        library: the folder of the user's own library, or None where it is switched off.
    """

    project: Path
    environment: dict[str, str]
    cache: Path
    max_bytes: int = 4 << 30
    quota_bytes: int | None = None
    lease_seconds: float = 1800.0
    require_sandbox: bool = False
    prices: Path | None = None
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    home: str = ""
    library: Path | None = None

    @property
    def blobs(self) -> Path:
        """Where the example tensors lie."""
        return self.project / "blobs"


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """A user's model, its input sets and where it runs.

    Attributes:
        model: FILE.py:make_model, package.module:factory, hf:org/name or a folder or configuration
            file behind hf:, or a saved TorchScript or torch.export file.
        inputs: one entry for every input set: a function beside the factory, a .safetensors file,
            or a text, image or sound file; the default depends on the kind of model.
        device: cpu, cuda or cuda:N.
        random_weights: make the weights instead of reading them, where a configuration is enough.
        dtype: bfloat16, float16 or float32 for an hf: model, None for its own.
        generate_tokens: how many tokens an hf: language model generates, 0 for one forward.
    """

    model: str
    inputs: tuple[str, ...] = ()
    device: str = "cpu"
    random_weights: bool = False
    dtype: str | None = None
    generate_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class CaptureRequest(ModelRequest):
    """A model to record; `max_bytes` of example tensors are kept, None for the setting."""

    examples_per_variant: int = 1
    max_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Collected:
    """Files of example tensors that nothing names any more: those that were removed, and the bytes
    of those that stay, since a capture may be about to name what is young. While `running` captures
    store theirs, none are removed."""

    blobs: int = 0
    bytes: int = 0
    young_bytes: int = 0
    running: int = 0


@dataclass(frozen=True, kw_only=True)
class Removed:
    """A capture that was removed, with the variants that no other capture saw and their nodes."""

    capture_id: str
    variants: int
    nodes: int
    collected: Collected = Collected()


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A candidate for a variant: under a lease, or without one under a parent or the root. `tier`
    is how thoroughly it is judged, `call_key` the client's own key for the call that brought it.

    Raises:
        BadOption: a text is too long, or holds what no file can.
    """

    text: str
    variant_id: str
    lease_id: str | None = None
    parent_id: str | None = None
    author: str = "unknown"
    note: str = ""
    tier: Tier = "full"
    call_key: str | None = None

    def __post_init__(self) -> None:
        limits.text("source", self.text, MAX_SOURCE_BYTES, "one file of kernels, without data")
        limits.text("author", self.author, limits.NAME)
        limits.text("note", self.note, MAX_NOTE_BYTES, "the idea in one line")


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A proposal that did not become a node, kept for the next author to learn from."""

    id: str
    variant_id: str
    parent_id: str
    author: str
    note: str
    source_digest: str
    verdict: Verdict
    created_at: float


@dataclass(frozen=True, kw_only=True)
class Submission:
    """The answer to a proposal: the verdict, and the node it became if it is valid.

    `repairs_left` is how often the lease still lets a failed one be mended, None without a lease.
    """

    verdict: Verdict
    node: Node | None
    attempt_id: str | None = None
    repairs_left: int | None = None


@dataclass(frozen=True, kw_only=True)
class CastEntrySummary:
    """One kernel of a cast as people and agents read it."""

    node_id: str
    operator: str
    variant: str
    calls: int
    share: float
    label: Label
    outcome: Outcome | None
    eager_us: float | None
    candidate_us: float | None
    speedup: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What an export added to the user's library, and why something could not be added."""

    ids: tuple[str, ...]
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
class CastSummary:
    """A cast on disk: its content hash, what it holds and how to load it; `whole_model` is None
    where the export did not measure the model, and `kept` where it added nothing to the user's
    library."""

    path: str
    sha256: str
    bytes: int
    format_version: int
    device_name: str
    torch_version: str
    archs: tuple[str, ...]
    entries: tuple[CastEntrySummary, ...]
    load: str
    whole_model: WholeModel | None = None
    kept: Kept | None = None


@dataclass(frozen=True, kw_only=True)
class MeasureRequest(ModelRequest):
    """Compare a model with and without a cast on its own example inputs, in about so many seconds
    of timing; `attribution` also asks what each kernel saves. With `trusted`, public keys or their
    fingerprints, only a cast that one of them signed is loaded."""

    cast: Path
    modes: tuple[Mode, ...] = ("eager",)
    attribution: bool = False
    seconds: float = SECONDS
    trusted: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class DeviceStatus:
    """A device that kernels can be written for, and what stands in the way if it is not usable."""

    backend: Backend
    name: str
    usable: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class EngineStatus:
    """What this server works on and with; counts are of the whole project.

    `isolation` is what surrounds a candidate here, and `open` what it could still do: read (files),
    socket, process.
    """

    version: str
    project: str
    torch_version: str
    devices: tuple[DeviceStatus, ...]
    isolation: str
    open: tuple[str, ...]
    captures: int
    variants: int
    nodes: int
    attempts: int
    active_leases: int
    running_jobs: int


class JobState(StrEnum):
    """Where a job is; `interrupted` means that the server ended while it ran: the same call, or
    waiting for it, takes it up. `cancelled` means that somebody ended it: the same call is another
    job."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True)
class Job:
    """Slow work with an id of its own; `result` is what the tool that started it answers.

    `key` is the same for the same call. `arguments` are those of the call while they may be needed
    again, which is until it has ended otherwise than with its server. `started_at` is when it was
    started last.
    """

    id: str
    kind: str
    key: str
    arguments: dict[str, Json] | None
    state: JobState
    progress: Progress | None
    result: dict[str, Json] | None
    error: str | None
    started_at: float


@dataclass(frozen=True, kw_only=True)
class OptimizeRow:
    """One line of the final table: a variant and the best that was found for it."""

    variant_id: str
    operator: str
    variant: str
    calls: int
    share: float
    node_id: str | None
    label: Label | None
    outcome: Outcome | None
    eager_us: float
    candidate_us: float | None
    speedup: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class OptimizeReport:
    """What an optimisation run did; `verdict_seconds` are submit-to-verdict times, in order."""

    rows: tuple[OptimizeRow, ...]
    proposals: int
    valid: int
    faster: int
    refused: dict[Status, int]
    verdict_seconds: tuple[float, ...]
