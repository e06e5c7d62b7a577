"""The capture child: one recorded run of a user's model, in a process of its own."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from kernelforge_engine.errors import ModelRaised
from kernelforge_engine.exchanges import Notice, Progress
from kernelforge_engine.families import families
from kernelforge_engine.pool.adopt import channel
from kernelforge_engine.pool.orders import Captured, CaptureOrder, Sighting
from kernelforge_engine.records import Capture
from kernelforge_engine.worker.coverage import Coverage, coverage
from kernelforge_engine.worker.examples import Examples, examples
from kernelforge_engine.worker.load import Loaded, load
from kernelforge_engine.worker.machine import device_name
from kernelforge_engine.worker.observe import (
    Observed,
    Plain,
    every_so_often,
    observe,
    observing,
    plain,
)
from kernelforge_engine.worker.recorder import Key, Seen, StoringPass
from kernelforge_engine.worker.regions import RegionKeeper
from kernelforge_engine.worker.roofline import Roofline
from kernelforge_engine.worker.serve import serve
from kernelforge_engine.worker.sightings import bound, busy_us, operators, regions, wanted

STEPS = 6
RECORDING, STORING = "recording and timing its operators", "storing example inputs"

Step = Callable[[int, str], None]


@dataclass(frozen=True, kw_only=True)
class Runs:
    """The run that nobody watched, the recorded one, and how they compare."""

    beside: Plain
    observed: Observed
    counted: Coverage


def capture(order: CaptureOrder, notice: Notice) -> Captured:
    """Load the model, run it unobserved, then count and time its operators, then store examples.

    Raises:
        ModelRaised: before it called any operator; later its error is part of the record.
    """

    def step(number: int, text: str) -> None:
        notice(Progress(done=number, total=STEPS, text=text))

    step(0, "loading the model")
    loaded = load(order.model)
    runs = _runs(loaded, step)
    step(4, STORING)
    with _stored(order, loaded, runs.observed, step) as kept:
        step(5, "measuring the machine")
        roofline = Roofline(loaded.device, Path(order.cache))
        found = _sightings(runs.observed, kept, roofline, loaded.requires)
    step(6, f"{len(found)} variants")
    record = _record(order, loaded, runs, roofline, kept.stored_bytes)
    return Captured(capture=record, sightings=tuple(found))


def _runs(loaded: Loaded, step: Step) -> Runs:
    step(1, "running it unobserved")
    beside = plain(loaded)
    step(2, RECORDING)
    observed = observe(loaded, beside, lambda count: step(2, f"{RECORDING}: {count} variants"))
    step(3, "counting its operators unobserved")
    counted = coverage(loaded, _by_operator(observed.seen), beside.wall_us)
    # Outputs have been compared, and their memory is wanted now.
    return Runs(beside=replace(beside, outputs=None), observed=observed, counted=counted)


def _sightings(
    observed: Observed, kept: Examples, roofline: Roofline, requires: str | None
) -> list[Sighting]:
    exact = operators(observed.seen, kept, roofline, requires)
    exact += regions(observed.regions, kept, roofline, requires, busy_us(observed.seen))
    return exact + families(exact)


def _record(
    order: CaptureOrder, loaded: Loaded, runs: Runs, roofline: Roofline, stored_bytes: int
) -> Capture:
    beside, observed = runs.beside, runs.observed
    error = observed.error or beside.error
    return Capture(
        id="",
        model=order.model.model,
        inputs=order.model.inputs,
        device=order.model.device,
        device_name=device_name(loaded.device),
        torch_version=str(torch.__version__),
        wall_us=beside.wall_us,
        busy_us=busy_us(observed.seen),
        calls=sum(s.calls for s in observed.seen.values()),
        output_drift=observed.drift,
        created_at=0.0,
        bound=bound(observed.seen, roofline, beside.wall_us),
        level=observed.level,
        coverage=runs.counted.share,
        unseen=runs.counted.unseen,
        error=None if error is None else str(error.fields["error"]),
        stored_bytes=stored_bytes,
    )


def _by_operator(seen: Mapping[Key, Seen]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for what in seen.values():
        counts[what.call.operator] += what.calls
    return counts


@contextmanager
def _stored(
    order: CaptureOrder, loaded: Loaded, observed: Observed, step: Step
) -> Iterator[Examples]:
    """The stored inputs of targets, dearest first, until the budget is used."""
    inputs = loaded.fresh()
    targets = wanted(observed.seen, observed.regions)
    tick = every_so_often(lambda count: step(4, f"{STORING}: {count} of {len(targets)} variants"))
    with examples(order, targets) as kept:

        def keep(key: Key, tensors: Sequence[torch.Tensor]) -> None:
            kept.keep(key, tensors)
            tick(len(kept.found))

        keeping = RegionKeeper(observed.tracer, kept.open, keep)
        storing = StoringPass(kept.open, keep, observed.tracer.step)
        try:
            with observing(observed.level), keeping, storing:
                loaded.run(inputs)
        except ModelRaised:
            if observed.error is None:
                step(4, f"{STORING}: the model raised in this run")
        yield kept


if __name__ == "__main__":
    ours, _ = channel()
    serve(ours, CaptureOrder, capture)
