"""The messages to and from the children that hold torch: capture, Judge and measurement.

capture  CaptureOrder -> Progress* Captured | Raised
Judge    ProbeOrder -> Probed; JudgeOrder -> Judged | Raised; TimeOrder -> Timed | Raised;
         ProfileOrder -> Profiled | Raised
measure  MeasureOrder -> Progress* Measured | Raised
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from kernelforge_engine.calls import Call
from kernelforge_engine.exchanges import DeviceStatus
from kernelforge_engine.measurements import SECONDS, Measurement, Mode
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.pool.protocol import Raised
from kernelforge_engine.profiles import Profile
from kernelforge_engine.records import (
    Artifact,
    Capture,
    Details,
    Tier,
    Timing,
    Variant,
    Verdict,
)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Progress of a child, a frame of its own between an order and its answer."""

    done: int
    total: int
    text: str
    kind: Literal["report"] = "report"


@dataclass(frozen=True, kw_only=True)
class Sighting(Details):
    """What one capture says about one variant, before it has an id; the fields are a Variant's."""

    call: Call
    calls: int
    eager_us: float
    share: float
    floor_us: float
    module: str
    target: bool
    reason: str | None
    examples: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class ModelOrder:
    """Which model to load, on which inputs and where; see worker.load for what may stand there."""

    model: str
    inputs: tuple[str, ...]
    device: str
    random_weights: bool = False
    dtype: str | None = None
    generate_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class CaptureOrder:
    """Run a user's model and record it; example tensors go into `blobs`.

    A capture keeps up to `examples_per_variant` examples of a variant, together up to `max_bytes`;
    of a tensor that does not fit, a sample of its values. `quota_bytes` is what the project folder
    may hold in all, and `room_bytes` how much of that was left; None where there is no quota.
    `cache` is where the rates of this machine are kept.
    """

    model: ModelOrder
    blobs: str
    cache: str
    max_bytes: int
    examples_per_variant: int = 1
    quota_bytes: int | None = None
    room_bytes: int | None = None
    kind: Literal["capture"] = "capture"


@dataclass(frozen=True, kw_only=True)
class Captured:
    """A capture without an id (and created_at 0), with what it saw."""

    capture: Capture
    sightings: tuple[Sighting, ...]
    kind: Literal["captured"] = "captured"


@dataclass(frozen=True, kw_only=True)
class ProbeOrder:
    """Ask which devices can be used."""

    kind: Literal["probe"] = "probe"


@dataclass(frozen=True, kw_only=True)
class Probed:
    """The devices of this machine; `arch` is "native" on the cpu and "sm_90" and the like else."""

    torch_version: str
    devices: tuple[DeviceStatus, ...]
    archs: dict[str, str]
    kind: Literal["probed"] = "probed"


@dataclass(frozen=True, kw_only=True)
class SizedPlan:
    """What a candidate launches at one size of a shape family."""

    sizes: tuple[int, ...]
    plan: ResolvedPlan


@dataclass(frozen=True, kw_only=True)
class JudgeOrder:
    """Judge a built candidate; `secret` (hexadecimal) keys every draw of this evaluation.

    `others` are further sizes of a shape family at which it is judged. At promotion it also runs as
    `sanitized`, a build of the same source that checks its own accesses; `unsanitized` says why
    there is none.
    """

    variant: Variant
    plan: ResolvedPlan
    artifact: Artifact
    blobs: str
    secret: str
    environment: dict[str, str]
    others: tuple[SizedPlan, ...] = ()
    tier: Tier = "full"
    sanitized: Artifact | None = None
    unsanitized: str = ""
    kind: Literal["judge"] = "judge"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The verdict, and for how many seconds it held the device."""

    verdict: Verdict
    seconds: float = 0.0
    kind: Literal["judged"] = "judged"


@dataclass(frozen=True, kw_only=True)
class TimeOrder:
    """Time a valid candidate against eager; `shims` is where built dispatch shims are cached, and
    `others` are further members of a shape family. `attempt` counts the benchmarks of its variant,
    this one included: the more there were, the more a win has to show."""

    variant: Variant
    plan: ResolvedPlan
    artifact: Artifact
    blobs: str
    shims: str
    secret: str
    environment: dict[str, str]
    others: tuple[SizedPlan, ...] = ()
    attempt: int = 1
    kind: Literal["time"] = "time"


@dataclass(frozen=True, kw_only=True)
class Timed:
    """The timing, or the verdict that says why a candidate that was valid is not any more; and for
    how many seconds it held the device."""

    timing: Timing | None
    verdict: Verdict | None = None
    seconds: float = 0.0
    kind: Literal["timed"] = "timed"


@dataclass(frozen=True, kw_only=True)
class ProfileOrder:
    """Profile a valid candidate; `rates` is the folder where the rates of this machine are kept."""

    variant: Variant
    plan: ResolvedPlan
    artifact: Artifact
    blobs: str
    rates: str
    environment: dict[str, str]
    kind: Literal["profile"] = "profile"


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """The profile, with measured_at 0."""

    profile: Profile
    kind: Literal["profiled"] = "profiled"


@dataclass(frozen=True, kw_only=True)
class MeasureOrder:
    """Run a user's model with and without a cast, interleaved, in about so many seconds of timing.

    `kernels` asks what each kernel saves, and `drop` to leave out those that the model is slower
    with, before the modes are compared. `trusted` is as `cast.load` takes it.
    """

    model: ModelOrder
    cast: str
    cache: str
    modes: tuple[Mode, ...] = ("eager",)
    kernels: bool = False
    drop: bool = False
    seconds: float = SECONDS
    trusted: tuple[str, ...] | None = None
    kind: Literal["measure"] = "measure"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The comparison."""

    measurement: Measurement
    kind: Literal["measured"] = "measured"


CaptureReply = Annotated[Captured | Raised, Field(discriminator="kind")]
JudgeCommand = Annotated[
    ProbeOrder | JudgeOrder | TimeOrder | ProfileOrder, Field(discriminator="kind")
]
JudgeReply = Annotated[Probed | Judged | Timed | Profiled | Raised, Field(discriminator="kind")]
MeasureReply = Annotated[Measured | Raised, Field(discriminator="kind")]
