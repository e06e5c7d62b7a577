"""How much of what a model runs was recorded: an independent count by torch's profiler.

The profiler sees the operators that the model called, in all its threads, and below each those that
it called in turn. Observing must not change what runs, and an operator that ran out of sight, in
another thread or in place of a fast path, shows here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from kernelforge_engine.errors import ModelRaised
from kernelforge_engine.worker.load import Loaded

LONGEST_US = 60e6  # a model that runs longer is not run once more for this
MADE_ASIDE = ("aten::empty", "aten::to", "aten::lift_fresh")  # torch.tensor(), before one sees it


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """The part of an unobserved run's calls that was recorded, and the calls that were not."""

    share: float | None = None
    unseen: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Op:
    """An operator that ran, with those it called."""

    name: str
    inside: tuple["Op", ...]


def coverage(loaded: Loaded, recorded: Mapping[str, int], wall_us: float | None) -> Coverage:
    """Compare recorded calls, by operator without its overload, with those of an unobserved run."""
    if wall_us is None or wall_us > LONGEST_US:
        return Coverage()
    inputs = loaded.fresh()
    try:
        with profile(activities=[ProfilerActivity.CPU], experimental_config=_all_threads()) as seen:
            loaded.run(inputs)
    except ModelRaised:
        return Coverage()
    results = seen.profiler.kineto_results if seen.profiler is not None else None
    return compared(tuple(_ops(results.experimental_event_tree() if results else ())), recorded)


def compared(ran: Iterable[Op], recorded: Mapping[str, int]) -> Coverage:
    """Match what ran with what was recorded: by its own name, else by what it called.

    A recording of decomposed operators names only what the operators called in turn.
    """
    left = Counter(recorded)
    missed: list[Op] = []
    total = 0
    for op in ran:
        total += 1
        if not _taken(op.name, left):
            missed.append(op)
    unseen = Counter(op.name for op in missed if not _matched_inside(op, left))
    if not total:
        return Coverage()
    return Coverage(share=1 - unseen.total() / total, unseen=dict(unseen))


def _taken(name: str, left: Counter[str]) -> bool:
    found = left[name] > 0
    left[name] -= found
    return found


def _matched_inside(op: Op, left: Counter[str]) -> bool:
    """Whether anything inside was recorded; all that was is taken."""
    found = [_taken(inner.name, left) or _matched_inside(inner, left) for inner in op.inside]
    return any(found)


def _ops(events: Iterable[Any]) -> Iterator[Op]:
    """The outermost operators among profiler events; annotations give way to what they hold."""
    found: list[Op] = []
    for event in events:
        inside = tuple(_ops(event.children))
        if _is_operator(event.name):
            found.append(Op(name=event.name, inside=inside))
        else:
            found.extend(inside)
    return _without_made_aside(found)


def _without_made_aside(ops: list[Op]) -> Iterator[Op]:
    """torch.tensor() makes its tensor where no mode looks, and only then shows it."""
    skipped: set[int] = set()
    for i in range(2, len(ops)):
        if tuple(op.name for op in ops[i - 2 : i + 1]) == MADE_ASIDE:
            skipped |= {i - 2, i - 1}
    return (op for i, op in enumerate(ops) if i not in skipped)


def _is_operator(name: str) -> bool:
    return "::" in name and bool(torch._C._jit_get_schemas_for_operator(name))


def _all_threads() -> Any:
    """A configuration that counts all threads; a torch without it counts only ours."""
    config = torch._C._profiler._ExperimentalConfig
    try:
        return config(profile_all_threads=True)
    except TypeError:
        return config()
