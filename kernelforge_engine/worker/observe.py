"""One run of a model with every operator call recorded, and the unobserved run beside it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch

from kernelforge_engine.errors import CaptureEmpty, MeasurementFailed, ModelRaised
from kernelforge_engine.worker.below import below_autograd
from kernelforge_engine.worker.clock import wall_us
from kernelforge_engine.worker.drift import drift
from kernelforge_engine.worker.load import Loaded
from kernelforge_engine.worker.recorder import CountingPass, Key, Seen
from kernelforge_engine.worker.regions import RegionSeen, RegionTracer
from kernelforge_engine.worker.trail import ModuleTrail

Level = Literal["whole", "decomposed"]
NOTICE_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Plain:
    """What a model does when nobody looks: its outputs and its clock, or what it raised."""

    outputs: Any = None
    wall_us: float | None = None
    error: ModelRaised | None = None


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What was recorded, up to the error if there was one."""

    level: Level
    seen: dict[Key, Seen]
    regions: tuple[RegionSeen, ...]
    tracer: RegionTracer
    drift: float | None
    error: ModelRaised | None


def plain(loaded: Loaded) -> Plain:
    """Run a model unobserved, then time it. One with a state may raise in a later run."""
    try:
        outputs = loaded.run()
    except ModelRaised as error:
        return Plain(error=error)
    try:
        return Plain(outputs=outputs, wall_us=wall_us(loaded.run))
    except ModelRaised:
        return Plain(outputs=outputs)


def observe(loaded: Loaded, beside: Plain, tick: Callable[[int], None]) -> Observed:
    """Record a run: whole operators, or decomposed ones where only those can be recorded.

    A forward that uses autograd itself fails below it; `tick` is told how many variants there are.

    Raises:
        ModelRaised: before it called anything.
        CaptureEmpty: it called nothing.
    """
    found = _recorded(loaded, beside, "whole", tick)
    if found.error is not None and beside.error is None:
        again = _recorded(loaded, beside, "decomposed", tick)
        found = again if again.error is None else found
    if not found.seen:
        raise found.error or CaptureEmpty
    return found


def _recorded(loaded: Loaded, beside: Plain, level: Level, tick: Callable[[int], None]) -> Observed:
    trail = ModuleTrail(loaded.model)
    tracer = RegionTracer(loaded.model, loaded.device)
    counting = CountingPass(trail, loaded.device, tracer.step, every_so_often(tick))
    inputs = loaded.fresh()
    error = None
    apart = None
    try:
        with observing(level), trail.watching(), tracer.watching(), counting:
            outputs = loaded.run(inputs)
        apart = _drift(beside.outputs, outputs)
    except ModelRaised as raised:
        error = raised
    return Observed(
        level=level,
        seen=counting.seen,
        regions=tuple(tracer.results(counting.eager_us)),
        tracer=tracer,
        drift=apart,
        error=error,
    )


@contextmanager
def observing(level: Level) -> Iterator[None]:
    """Where a dispatch mode sees operators of that level, and nothing is compiled."""
    with ExitStack() as stack:
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(torch.no_grad())
        if level == "whole":
            stack.enter_context(below_autograd())
        yield


def every_so_often(tick: Callable[[int], None]) -> Callable[[int], None]:
    """The same, but most calls of it do nothing: people read slower than operators run."""
    last = time.monotonic()

    def slower(count: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= NOTICE_SECONDS:
            last = now
            tick(count)

    return slower


def _drift(expected: Any, observed: Any) -> float | None:
    """The largest difference of the observed run, None where the two cannot be compared: a model
    may carry a state from run to run, or return what has no numbers to compare."""
    try:
        return drift(expected, observed)[0]
    except (MeasurementFailed, RuntimeError, TypeError, NotImplementedError):
        return None
