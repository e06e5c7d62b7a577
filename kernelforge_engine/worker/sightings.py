"""What a capture says about each variant, from what was seen and what was stored."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelforge_engine.calls import Call
from kernelforge_engine.pool.orders import Sighting
from kernelforge_engine.records import Bound
from kernelforge_engine.worker.examples import Examples, Wanted
from kernelforge_engine.worker.recorder import Key, Seen, reason_words
from kernelforge_engine.worker.regions import RegionSeen
from kernelforge_engine.worker.roofline import Roofline, bound_of
from kernelforge_engine.worker.traffic import call_bytes

OWN = ("aten::", "region::")  # of what torch alone has, and what is made of it


def cost_us(seen: Seen) -> float:
    """All calls of a variant together."""
    return seen.calls * seen.eager_us


def busy_us(seen: Mapping[Key, Seen]) -> float:
    """All calls of all operators together."""
    return sum(map(cost_us, seen.values()))


def wanted(seen: Mapping[Key, Seen], regions: Sequence[RegionSeen]) -> list[Wanted]:
    """The targets, whose inputs are to be stored."""
    operators = [
        Wanted(key=key, cost_us=cost_us(what), call=what.call, calls=what.calls, memory=what.memory)
        for key, what in seen.items()
        if what.reason is None
    ]
    return operators + [
        Wanted(
            key=what.key,
            cost_us=what.calls * what.eager_us,
            call=what.call,
            calls=what.calls,
            memory=what.memory,
        )
        for what in regions
        if what.reason is None
    ]


def operators(
    seen: Mapping[Key, Seen], kept: Examples, roofline: Roofline, requires: str | None
) -> list[Sighting]:
    """Every operator variant; `requires` is what registers operators that torch does not have."""
    total = busy_us(seen)
    found = []
    for key, what in seen.items():
        reason = what.reason or kept.reason(key)
        found.append(
            Sighting(
                call=what.call,
                calls=what.calls,
                eager_us=what.eager_us,
                share=cost_us(what) / total if total else 0.0,
                # A busy machine may have slowed the copies and products that the rates come from.
                floor_us=min(what.eager_us, roofline.floor_us(what.call, what.flops, what.dtype)),
                module=what.module,
                target=reason is None,
                reason=reason,
                examples=kept.found.get(key, ()),
                bytes=call_bytes(what.call),
                flops=what.flops,
                parameters=tuple(what.memory),
                requires=requires if _is_foreign(what.call) else None,
            )
        )
    return found


def regions(
    seen: Sequence[RegionSeen],
    kept: Examples,
    roofline: Roofline,
    requires: str | None,
    total_us: float,
) -> list[Sighting]:
    """Every region; its share is that of its operators, which `total_us` counts already."""
    found = []
    for what in seen:
        reason = what.reason or kept.reason(what.key)
        floor_us = roofline.floor_us(what.call, what.flops, what.dtype)
        words = what.call.words if what.reason is None else reason_words(what.reason)
        found.append(
            Sighting(
                call=replace(what.call, words=words),
                calls=what.calls,
                eager_us=what.eager_us,
                share=what.calls * what.inner_us / total_us if total_us else 0.0,
                floor_us=min(what.eager_us, floor_us),
                module=what.module,
                target=reason is None,
                reason=reason,
                examples=kept.found.get(what.key, ()),
                bytes=call_bytes(what.call),
                flops=what.flops,
                parameters=what.parameters,
                inside=what.inside,
                within=what.within,
                launches=what.launches,
                requires=requires if _is_foreign(what.call) else None,
            )
        )
    return found


def bound(seen: Mapping[Key, Seen], roofline: Roofline, wall_us: float | None) -> Bound | None:
    """What holds the model back."""
    floors = (
        (
            what.calls * roofline.memory_us(call_bytes(what.call)),
            what.calls * roofline.compute_us(what.flops, what.dtype),
        )
        for what in seen.values()
    )
    return bound_of(wall_us, busy_us(seen), floors)


def _is_foreign(call: Call) -> bool:
    steps = call.region.steps if call.region is not None else ()
    names = [step.operator for step in steps] or [call.operator]
    return not all(name.startswith(OWN) for name in names)
