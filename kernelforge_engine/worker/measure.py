"""Whole-model latency, memory and output drift, with and without a cast, in one process."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from kernelforge_engine.dispatch.runtime import Cast, Counters
from kernelforge_engine.measurements import Comparison, GenerationDrift, KernelSaving, Mode
from kernelforge_engine.worker.budget import Budget, OutOfTime
from kernelforge_engine.worker.drift import drift, image_drift, logit_drift
from kernelforge_engine.worker.generated import MOST_TOKENS, generation_drift, generator
from kernelforge_engine.worker.modes import prepared
from kernelforge_engine.worker.peaks import peak_bytes
from kernelforge_engine.worker.prediction import Hits, predicted_us, saving
from kernelforge_engine.worker.quartets import Paired, Side, Trial
from kernelforge_engine.worker.ways.ready import Inputs

ORIGINAL, PATCHED = 0, 1
GENERATING_S = 60.0
UNUSED = "it served no call of this model"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is measured: a model on its input sets, all together, and a cast.

    The model runs under no_grad, on the same inputs every time: a model that changes them measures
    what it then does.
    """

    model: Callable[..., Any]
    sets: Sequence[Inputs]
    cast: Cast
    device: torch.device = torch.device("cpu")  # noqa: RUF009  a value

    def enter(self, without: Collection[str] | None) -> Callable[[], None]:
        """Puts the process into the state of the cast without some nodes, or of none at all."""

        def switch() -> None:
            self.cast.disable()
            if without is not None:
                self.cast.enable(self.model, without=without)

        return switch


def compare(
    subject: Subject,
    mode: Mode,
    budget: Budget,
    rng: np.random.Generator,
    *,
    without: Collection[str] = (),
) -> Comparison:
    """The model in one mode, as it is and with the cast less the nodes `without`.

    Raises:
        NoSuchMode: it cannot be run in this mode.
        OutOfTime: the budget does not reach for it.
        MeasurementFailed: outputs that cannot be compared.
    """
    before = subject.cast.counters()
    enters = subject.enter(None), subject.enter(without)
    with (
        torch.no_grad(),
        prepared(mode, subject.model, subject.sets, enters, subject.device) as sides,
    ):
        try:
            return _compared(subject, mode, (sides[ORIGINAL], sides[PATCHED]), budget, rng, before)
        finally:
            subject.cast.disable()


def _compared(
    subject: Subject,
    mode: Mode,
    sides: tuple[Side, Side],
    budget: Budget,
    rng: np.random.Generator,
    before: Counters,
) -> Comparison:
    cast = subject.cast
    served = run_hits(cast, sides[PATCHED])
    trial = Trial(sides[ORIGINAL], sides[PATCHED], cast.disable)
    outputs = trial.output(ORIGINAL), trial.output(PATCHED)
    max_abs, max_relative = drift(*outputs)
    logits, image = logit_drift(*outputs), image_drift(*outputs)
    del outputs  # their memory is wanted now
    held = [_held(mode, side, subject.device) for side in sides]
    times = trial.paired(budget, rng)
    generation = _generation(subject, sides, times) if mode == "eager" else None
    cast.disable()
    after = cast.counters()
    measured = tuple(times.saved(ratio) for ratio in (times.ratio, times.low, times.high))
    return Comparison(
        mode=mode,
        original_us=times.first_us,
        patched_us=times.second_us,
        speedup=times.ratio,
        low=times.low,
        high=times.high,
        quartets=times.quartets,
        max_abs=max_abs,
        max_relative=max_relative,
        hits=after.hits - before.hits,
        run_hits=sum(h.hits for h in served),
        saving=saving(served, times.first_us, (measured[0], measured[1], measured[2])),
        fallbacks=_increase(before.fallbacks, after.fallbacks),
        original_bytes=held[ORIGINAL],
        patched_bytes=held[PATCHED],
        logits=logits,
        image=image,
        generation=generation,
    )


def run_hits(cast: Cast, side: Side) -> list[Hits]:
    """What every entry of a cast serves in one run."""
    side.settle()
    before = cast.counters().served
    side.forwards()
    after = cast.counters().served
    return [
        Hits(
            node_id=entry.node_id,
            operator=entry.call.name,
            timing=entry.timing,
            hits=now.hits - then.hits,
        )
        for entry, then, now in zip(cast.file.entries, before, after, strict=True)
    ]


def attribute(
    subject: Subject,
    served: Sequence[Hits],
    budget: Budget,
    rng: np.random.Generator,
    *,
    without: Collection[str] = (),
) -> KernelSaving:
    """What one kernel saves, whose entries `served` are: the cast without it against the cast with
    it, both less the nodes `without`, in eager mode."""
    node_id, hits = served[0].node_id, sum(h.hits for h in served)
    facts = KernelSaving(
        node_id=node_id,
        operator=served[0].operator,
        run_hits=hits,
        predicted_us=predicted_us(served),
    )
    if not hits:
        budget.skip()
        return replace(facts, unmeasured=UNUSED)
    enters = subject.enter({*without, node_id}), subject.enter(without)
    with (
        torch.no_grad(),
        prepared("eager", subject.model, subject.sets, enters, subject.device) as sides,
    ):
        try:
            trial = Trial(sides[0], sides[1], subject.cast.disable)
            times = trial.paired(budget, rng)
        except OutOfTime as late:
            return replace(facts, unmeasured=str(late))
        finally:
            subject.cast.disable()
    return replace(
        facts,
        saving_us=times.saved(times.ratio),
        low_us=times.saved(times.low),
        high_us=times.saved(times.high),
    )


def _held(mode: Mode, side: Side, device: torch.device) -> int | None:
    """Replays allocate nothing: a graph holds for good what its run holds while it is recorded. Of
    the graphs that torch.compile records itself nothing can be told."""
    if mode == "reduce-overhead":
        return None
    side.settle()
    return peak_bytes(side.forwards, device)


def _generation(
    subject: Subject, sides: tuple[Side, Side], times: Paired
) -> GenerationDrift | None:
    """The drift of a generation; a step of one takes no longer than a forward of the prompt."""
    model = generator(subject.model)
    if model is None:
        return None
    tokens = min(MOST_TOKENS, int(GENERATING_S / (2 * times.first_us / 1e6)))
    enters = sides[ORIGINAL].enter, sides[PATCHED].enter
    return generation_drift(model, subject.sets[0], tokens, enters)


def _increase(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for operator, reasons in after.items():
        for reason, count in reasons.items():
            if more := count - before.get(operator, {}).get(reason, 0):
                found.setdefault(operator, {})[reason] = more
    return found
