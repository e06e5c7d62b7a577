"""The capture child: one recorded run of a user's model, in a process of its own."""

from typing import Any

import torch

from kernelforge_engine.calls import Call
from kernelforge_engine.errors import CaptureEmpty, MeasurementFailed
from kernelforge_engine.exchanges import Notice, Progress
from kernelforge_engine.pool.adopt import channel
from kernelforge_engine.pool.orders import Captured, CaptureOrder, Sighting
from kernelforge_engine.records import Capture
from kernelforge_engine.worker.clock import wall_us
from kernelforge_engine.worker.load import Loaded, load
from kernelforge_engine.worker.machine import device_name
from kernelforge_engine.worker.measure import drift
from kernelforge_engine.worker.recorder import (
    CountingPass,
    Key,
    ModuleTrail,
    Seen,
    StoringPass,
    below_autograd,
)
from kernelforge_engine.worker.roofline import Roofline
from kernelforge_engine.worker.serve import serve
from kernelforge_engine.worker.shelf import shelf

STEPS = 5


def capture(order: CaptureOrder, notice: Notice) -> Captured:
    """Load the model, run it unobserved, then count and time its operators, then store examples."""

    def step(number: int, text: str) -> None:
        notice(Progress(done=number, total=STEPS, text=text))

    step(0, "loading the model")
    loaded = load(order.model)
    step(1, "running it unobserved")
    expected = loaded.run()
    model_us = wall_us(loaded.run)
    step(2, "recording and timing its operators")
    seen, drift = _count(loaded, expected)
    step(3, "storing example inputs")
    examples = _examples(loaded, seen, order)
    step(4, "measuring the machine")
    sightings = _sightings(loaded, seen, examples, order.max_bytes)
    step(5, f"{len(sightings)} variants")
    record = Capture(
        id="",
        model=order.model.model,
        inputs=order.model.inputs,
        device=order.model.device,
        device_name=device_name(loaded.device),
        torch_version=str(torch.__version__),
        wall_us=model_us,
        busy_us=sum(s.calls * s.eager_us for s in seen.values()),
        calls=sum(s.calls for s in seen.values()),
        output_drift=drift,
        created_at=0.0,
    )
    return Captured(capture=record, sightings=tuple(sightings))


def _count(loaded: Loaded, expected: Any) -> tuple[dict[Key, Seen], float | None]:
    trail = ModuleTrail(loaded.model)
    counting = CountingPass(trail, loaded.device)
    inputs = loaded.fresh()
    stance = torch.compiler.set_stance("force_eager")
    with stance, trail.watching(), torch.no_grad(), below_autograd(), counting:
        observed = loaded.run(inputs)
    if not counting.seen:
        raise CaptureEmpty
    return counting.seen, _drift(expected, observed)


def _drift(expected: Any, observed: Any) -> float | None:
    """The largest difference of the observed run, None where the two cannot be compared: a model
    may carry a state from run to run."""
    try:
        return drift(expected, observed)[0]
    except MeasurementFailed:
        return None


def _cost(seen: Seen) -> float:
    return seen.calls * seen.eager_us


def _size(call: Call) -> int:
    return sum(t.extent_bytes for t in call.inputs)


def _examples(
    loaded: Loaded, seen: dict[Key, Seen], order: CaptureOrder
) -> dict[Key, tuple[str, ...]]:
    """Store the inputs of targets, dearest first, until the budget is used."""
    wanted: set[Key] = set()
    left = order.max_bytes
    for key, what in sorted(seen.items(), key=lambda item: -_cost(item[1])):
        if what.reason is None and _size(what.call) <= left:
            wanted.add(key)
            left -= _size(what.call)
    stored: dict[Key, tuple[str, ...]] = {}

    def keep(key: Key, tensors: list[torch.Tensor]) -> None:
        stored[key] = tuple(kept.store(t) for t in tensors)

    inputs = loaded.fresh()
    stance = torch.compiler.set_stance("force_eager")
    with shelf(order) as kept, stance, torch.no_grad(), below_autograd(), StoringPass(wanted, keep):
        loaded.run(inputs)
    return stored


def _sightings(
    loaded: Loaded,
    seen: dict[Key, Seen],
    examples: dict[Key, tuple[str, ...]],
    max_bytes: int,
) -> list[Sighting]:
    roofline = Roofline(loaded.device)
    total = sum(_cost(s) for s in seen.values())
    found = []
    for key, what in seen.items():
        example = examples.get(key)
        reason = what.reason
        if reason is None and example is None:
            reason = _without_example(what.call, max_bytes)
        found.append(
            Sighting(
                call=what.call,
                calls=what.calls,
                eager_us=what.eager_us,
                share=_cost(what) / total if total else 0.0,
                # A busy machine may have slowed the copies and products that the rates come from.
                floor_us=min(what.eager_us, roofline.floor_us(what.call, what.flops, what.dtype)),
                module=what.module,
                target=reason is None,
                reason=reason,
                examples=() if example is None else (example,),
            )
        )
    return found


def _without_example(call: Call, max_bytes: int) -> str:
    if _size(call) > max_bytes:
        return f"its examples do not fit into the capture's budget of {max_bytes} bytes"
    return "its inputs were not stored: the budget was used up, or a second run did not call it"


if __name__ == "__main__":
    ours, _ = channel()
    serve(ours, CaptureOrder, capture)
