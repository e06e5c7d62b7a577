"""What a pass says about regions: calls of equal identity together, and why others are none."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.recording import NO_TENSORS
from kernelforge_engine.records import Inner
from kernelforge_engine.worker.region_proof import Cost
from kernelforge_engine.worker.region_watch import Site

Key = tuple[str, tuple[int, ...]]
ONE_OPERATOR = "it is one operator only"
# What nobody would call a region is not even counted: a card of it would only be in the way.
UNSAID = {"module": (ONE_OPERATOR,), "function": (ONE_OPERATOR, NO_TENSORS)}


@dataclass(frozen=True, kw_only=True)
class RegionSeen:
    """What a pass knows about one region; `reason` says why it is not a target.

    Attributes:
        inside, inner_us: its operators, and the sum of their times, which defines its share.
        within: the regions that hold it, by operator name.
        memory: memory_of() those inputs that are parameters or buffers.
    """

    call: Call
    calls: int
    reason: str | None
    eager_us: float = 0.0
    flops: int = 0
    dtype: torch.dtype | None = None
    module: str = ""
    inside: tuple[Inner, ...] = ()
    within: tuple[str, ...] = ()
    inner_us: float = 0.0
    memory: Mapping[int, Hashable] = field(default_factory=dict)
    launches: int | None = None

    @property
    def key(self) -> Key:
        """What tells it from every other region."""
        return self.call.operator, self.call.words

    @property
    def parameters(self) -> tuple[int, ...]:
        """Which inputs are parameters or buffers."""
        return tuple(self.memory)


@dataclass(kw_only=True, eq=False)
class Place:
    """Calls of one instance with arguments of one kind: known after its first call has ended."""

    site: Site
    module: str
    key: Key | None = None
    reason: str | None = None
    calls: int = 0
    recorded: int = 0
    parents: set["Place"] = field(default_factory=set)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A region that qualified."""

    call: Call
    keys: tuple[Key, ...]
    cost: Cost
    memory: Mapping[int, Hashable]


def report(
    places: Iterable[Place], found: Mapping[Key, Found], seen_us: Callable[[Key], float]
) -> list[RegionSeen]:
    """Every region, targets first; `seen_us` gives the time of an operator by its key."""
    groups: dict[Key, list[Place]] = {}
    refused: dict[tuple[str, str], list[Place]] = {}
    for place in places:
        if place.reason is not None:
            if place.reason not in UNSAID[place.site.kind]:
                refused.setdefault((place.site.name, place.reason), []).append(place)
        elif place.key is not None:
            groups.setdefault(place.key, []).append(place)
    targets = [_target(found[key], group, seen_us) for key, group in groups.items()]
    return targets + [_refused(name, why, group) for (name, why), group in refused.items()]


def _target(found: Found, places: Sequence[Place], seen_us: Callable[[Key], float]) -> RegionSeen:
    inside = _inside(found, seen_us)
    floating = [t.dtype for t in found.call.inputs if "float" in t.dtype]
    return RegionSeen(
        call=found.call,
        calls=sum(place.calls for place in places),
        reason=None,
        eager_us=found.cost.eager_us,
        flops=found.cost.flops,
        dtype=getattr(torch, floating[0]) if floating else None,
        module=places[0].module,
        inside=inside,
        within=_within(places),
        inner_us=sum(inner.us * inner.calls for inner in inside),
        memory=found.memory,
        launches=found.cost.launches,
    )


def _within(places: Sequence[Place]) -> tuple[str, ...]:
    """The names of the regions above, at any depth."""
    above: set[Place] = set()
    waiting = [parent for place in places for parent in place.parents]
    while waiting:
        place = waiting.pop()
        if place not in above:
            above.add(place)
            waiting += place.parents
    keys = {place.key for place in above.difference(places) if place.reason is None}
    return tuple(sorted({key[0] for key in keys if key is not None}))


def _inside(found: Found, seen_us: Callable[[Key], float]) -> tuple[Inner, ...]:
    names = [step.operator + (f".{step.overload}" if step.overload else "")
             for step in found.call.region.steps] if found.call.region else []  # fmt: skip
    times: dict[str, list[float]] = {}
    for name, key in zip(names, found.keys, strict=True):
        times.setdefault(name, []).append(seen_us(key))
    return tuple(
        Inner(operator=name, calls=len(us), us=sum(us) / len(us)) for name, us in times.items()
    )


def _refused(name: str, reason: str, places: Sequence[Place]) -> RegionSeen:
    """What is counted of a region that is no target."""
    call = Call(
        operator=f"region::{name}", overload="", words=(), arguments=(), inputs=(), outputs=()
    )
    calls = sum(place.calls for place in places)
    return RegionSeen(call=call, calls=calls, reason=reason, module=places[0].module)
