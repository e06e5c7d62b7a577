"""A region as a program: its recorded operators, run again without its code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch._ops import OpOverload

from kernelforge_engine.calls import Call, Json, Region, Step
from kernelforge_engine.cast.words import tensor_indexes
from kernelforge_engine.dispatch.encode import Unguardable, decode, parameters
from kernelforge_engine.dispatch.guard import operator_of
from kernelforge_engine.dispatch.recording import ABSENT, flattened


@dataclass(frozen=True, kw_only=True)
class _Runnable:
    """A step with its operator found and its arguments sorted; `spent` is not read after it."""

    op: OpOverload
    positional: tuple[Json, ...]
    named: tuple[tuple[str, Json], ...]
    spent: tuple[int, ...]


class Program:
    """The steps of a region, ready to run on tensors in the order of its call's inputs.

    Raises:
        Unguardable: an operator is not registered here or has other arguments.
    """

    def __init__(self, region: Region, inputs: int) -> None:
        self._returns = tuple(n for n in region.returns if n != ABSENT)
        spent = _spent(region, inputs)
        self._steps = [_runnable(s, spent[i]) for i, s in enumerate(region.steps)]

    @property
    def operators(self) -> tuple[OpOverload, ...]:
        """What it runs, in order."""
        return tuple(step.op for step in self._steps)

    def run(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """What the region returns; an intermediate is let go when it was read for the last time."""
        values: list[Any] = list(tensors)
        for step in self._steps:
            args = [decode(v, values) for v in step.positional]
            kwargs = {n: decode(v, values) for n, v in step.named}
            values += flattened(step.op(*args, **kwargs))
            for number in step.spent:
                values[number] = None
        return [values[n] for n in self._returns]


def _runnable(step: Step, spent: tuple[int, ...]) -> _Runnable:
    op = operator_of(Call(operator=step.operator, overload=step.overload, words=(),
                          arguments=(), inputs=(), outputs=()))  # fmt: skip
    names = [p.name for p in parameters(op)]
    if names != [a.name for a in step.arguments]:
        raise Unguardable(why=f"{step.operator} takes {', '.join(names)} in this version of torch")
    paired = list(zip(parameters(op), step.arguments, strict=True))
    return _Runnable(
        op=op,
        positional=tuple(a.value for p, a in paired if not p.keyword_only),
        named=tuple((p.name, a.value) for p, a in paired if p.keyword_only),
        spent=spent,
    )


def _spent(region: Region, inputs: int) -> list[tuple[int, ...]]:
    """After each step, the numbers of intermediates that nothing reads any more."""
    last: dict[int, int] = {}
    count = inputs
    for position, step in enumerate(region.steps):
        for argument in step.arguments:
            last |= dict.fromkeys(tensor_indexes(argument.value), position)
        last |= dict.fromkeys(range(count, count + step.results), position)
        count += step.results
    kept = set(region.returns)
    found: list[list[int]] = [[] for _ in region.steps]
    for number, position in last.items():
        if number >= inputs and number not in kept:
            found[position].append(number)
    return [tuple(numbers) for numbers in found]
