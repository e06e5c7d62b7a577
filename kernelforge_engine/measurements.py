"""What a whole model does with a cast, as frozen data.

A run is one forward for every input set; times are microseconds of a run.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

Mode = Literal["eager", "compile", "reduce-overhead", "cuda_graph"]
MODES: tuple[Mode, ...] = get_args(Mode)
SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class LogitDrift:
    """How far logits moved: the mean Kullback-Leibler divergence of the softmax from the original's
    to the patched one's, in nats, and the part of positions whose likeliest token is the same."""

    kl_nats: float
    same_token: float
    positions: int


@dataclass(frozen=True, kw_only=True)
class ImageDrift:
    """How far pictures moved: the peak signal-to-noise ratio against the range of the original, of
    the worst of them; None where no value differs."""

    psnr_db: float | None


@dataclass(frozen=True, kw_only=True)
class GenerationDrift:
    """The part of greedily generated tokens that is the same, place by place; `failed` says why
    nothing was generated."""

    same_token: float | None
    tokens: int
    failed: str | None = None


@dataclass(frozen=True, kw_only=True)
class Saving:
    """What the kernels should save of a run by their own timings, and what the model saved.

    Attributes:
        predicted_us: the sum over served calls of eager_us - candidate_us.
        measured_us: original - patched, from low_us to high_us.
        share: the part of the original run that eager takes for the served calls.
        ceiling: the speed-up if they took no time, 1 / (1 - share); None from a share of 1 on.
        untimed_hits: served calls of a size that was not timed itself, which are not predicted.
        flag: what a measured saving outside [0.5, 1.2] x predicted hints at, that its interval is
            too wide to tell, or None.
    """

    predicted_us: float
    measured_us: float
    low_us: float
    high_us: float
    share: float
    ceiling: float | None
    untimed_hits: int = 0
    flag: str | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One way of running a model, original against patched, interleaved in one process.

    Attributes:
        speedup: original over patched, with its 99 % interval from low to high.
        max_abs: the largest difference of two outputs, and max_relative the largest one over the
            root mean square of the original output.
        hits: calls that ran a kernel in all patched runs, warm-up included; a replayed CUDA graph
            counts what it was captured with, once.
        run_hits: calls that ran a kernel in one run, of a CUDA graph when it was captured.
        fallbacks: calls that stayed eager, by operator and reason.
        original_bytes: the most that a run held at once beyond what was held before it, outputs
            included, and for a CUDA graph what its recorded run held; None where torch does not
            tell.
    """

    mode: Mode
    original_us: float
    patched_us: float
    speedup: float
    low: float
    high: float
    quartets: int
    max_abs: float
    max_relative: float
    hits: int
    run_hits: int
    saving: Saving
    fallbacks: dict[str, dict[str, int]] = field(default_factory=dict)
    original_bytes: int | None = None
    patched_bytes: int | None = None
    logits: LogitDrift | None = None
    image: ImageDrift | None = None
    generation: GenerationDrift | None = None


@dataclass(frozen=True, kw_only=True)
class KernelSaving:
    """What one kernel saves of a run: the time without it less the time with the whole cast.

    Negative, it makes the model slower. `unmeasured` says why there is no figure; `predicted_us` is
    None where none of the sizes it served was timed.
    """

    node_id: str
    operator: str
    run_hits: int
    predicted_us: float | None
    saving_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    unmeasured: str | None = None

    @property
    def slows(self) -> bool:
        """Whether the model is slower with it, beyond doubt."""
        return self.high_us is not None and self.high_us < 0


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A model with and without a cast, in every mode that was asked for.

    Attributes:
        rows: the modes that could be compared, and `failed` why others could not.
        kernels: what each kernel saves, where that was asked for.
        dropped: nodes that were left out of `rows` because the model is slower with them.
    """

    rows: tuple[Comparison, ...]
    failed: dict[str, str] = field(default_factory=dict)
    kernels: tuple[KernelSaving, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Check:
    """How an export measures the captured model, in at most about so many seconds of timing.

    `keep_all` keeps kernels with which the model is slower.
    """

    seconds: float = 180.0
    keep_all: bool = False


@dataclass(frozen=True, kw_only=True)
class WholeModel:
    """What an export found about the captured model with the kernels of its cast, in eager mode.

    Attributes:
        uncompared: why there are no figures, or None.
        dropped: nodes that are not in the cast because the model is slower with them, each with
            what it costs.
        slowing: nodes in the cast although the model is slower with them.
        unknown: nodes of which that is not known, and why.
    """

    original_us: float | None
    patched_us: float | None
    speedup: float | None
    low: float | None
    high: float | None
    uncompared: str | None = None
    dropped: dict[str, str] = field(default_factory=dict)
    slowing: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A cast that was written: the hash and the path it had then, and the nodes in it."""

    sha256: str
    path: str
    node_ids: tuple[str, ...]
    at: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measurement on record: by which task, of which model where, and with which cast, None for
    an export that wrote none because the model was slower."""

    task: Literal["export", "measure"]
    model: str
    device: str
    cast_sha256: str | None
    measurement: Measurement
    at: float
