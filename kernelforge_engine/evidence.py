"""What a verdict and a timing rest on, as one bundle that another machine can check again."""

from dataclasses import dataclass

from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.records import Timing, Verdict


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Values of one captured input in base64: all of them in order where it is `whole`, else a few,
    so that inputs like it can be drawn elsewhere. `dtype` is that of a safetensors file."""

    dtype: str
    whole: bool
    data: str


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where a candidate was judged and timed."""

    device_name: str
    arch: str
    torch: str
    kernelforge: str


@dataclass(frozen=True, kw_only=True)
class Origin:
    """How a kernel was made and on what it was judged; `compiler` is everything about it that can
    change what it makes, flags and target included, and `parameters` are the inputs that are
    parameters or buffers of the model. What is not known of a cast is empty."""

    artifact_digest: str
    compiler: str
    machine: Machine
    samples: tuple[Sample, ...] = ()
    parameters: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What speaks for a kernel of a cast on one machine; `node_id` is its name in that project."""

    node_id: str
    verdict: Verdict
    timing: Timing | None
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The evidence of one node. The verdict's own has the tier, the draws and rules, the sandbox
    and the sanitizers; the timing's own has the state of the machine."""

    node_id: str
    operator: str
    source_digest: str
    plan: ResolvedPlan
    verdict: Verdict
    timing: Timing | None
    origin: Origin
