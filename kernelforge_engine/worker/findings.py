"""What a broken rule says: which, by how much, where; never a value."""

from dataclasses import dataclass

import torch

from kernelforge_engine.calls import Json
from kernelforge_engine.records import Status


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One broken rule; `times` is the error over its bound, where the rule has one."""

    status: Status
    rule: str
    text: str
    evidence: dict[str, Json]
    times: float | None = None


def wrong(rule: str, text: str, evidence: dict[str, Json], times: float | None = None) -> Finding:
    """A finding about values."""
    return Finding(status=Status.WRONG_VALUES, rule=rule, text=text, evidence=evidence, times=times)


def place(output: int, flat: int, shape: torch.Size | tuple[int, ...]) -> dict[str, Json]:
    """Where an element is: the output, its flat number in row-major order, and its index."""
    index: list[Json] = []
    rest = flat
    for size in reversed(shape):
        index.insert(0, rest % size)
        rest //= size
    return {"output": output, "at": flat, "index": index}


def misplaced(
    rule: str, text: str, output: int, bad: torch.Tensor, more: dict[str, Json] | None = None
) -> Finding | None:
    """A finding about the elements of an output that are `bad`, or None where none is."""
    if not bool(bad.any()):
        return None
    flat = bad.reshape(-1)
    first = int(flat.nonzero()[0])
    count: dict[str, Json] = {"elements": int(flat.sum()), "of": flat.numel()}
    return wrong(rule, text, {**place(output, first, bad.shape), **count, **(more or {})})


def ratio(found: float, bound: float) -> float:
    """An error over its bound; -1 where nothing is allowed."""
    return round(found / bound, 3) if bound > 0 else -1.0
