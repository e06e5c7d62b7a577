"""A region as a program: its recorded operators, run again without its code."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from kernelforge_engine.calls import Call, Json, Region, Step
from kernelforge_engine.cast.words import tensor_indexes
from kernelforge_engine.dispatch.encode import Parameter, Unguardable, decode, parameters, schema
from kernelforge_engine.dispatch.guard import operator_of
from kernelforge_engine.dispatch.recording import ABSENT, flattened


class Program:
    """The steps of a region, ready to run on tensors in the order of its call's inputs.

    They are one Python function that calls the operators one after the other, since whatever else
    Python did between them would be charged to eager when a region is timed. Its text holds names
    of its own making only, nothing of the region.

    Raises:
        Unguardable: an operator is not registered here or has other arguments.
    """

    def __init__(self, region: Region, inputs: int) -> None:
        self.operators = tuple(map(_operator, region.steps))  # what it runs, in order
        self._run = _Text(inputs).function(region, self.operators)

    def run(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """What the region returns; an intermediate is let go when it was read for the last time."""
        found: list[Tensor] = self._run(*tensors)
        return found


class _Text:
    """The text of a program's function, and the values of the names in it."""

    def __init__(self, inputs: int) -> None:
        self._inputs = self._count = inputs
        self._names: dict[str, Any] = {"flattened": flattened}

    def function(self, region: Region, operators: Sequence[OpOverload]) -> Callable[..., Any]:
        """The function of a region."""
        lines = [f"def run({', '.join(f't{n}' for n in range(self._inputs))}):"]
        spent = _spent(region, self._inputs)
        for step, op, gone in zip(region.steps, operators, spent, strict=True):
            lines.append(self._step(step, op))
            lines += [f"del t{number}" for number in gone]
        returned = ", ".join(f"t{n}" for n in region.returns if n != ABSENT)
        exec("\n    ".join([*lines, f"return [{returned}]"]), self._names)  # noqa: S102  our own
        run: Callable[..., Any] = self._names["run"]
        return run

    def _step(self, step: Step, op: OpOverload) -> str:
        paired = list(zip(parameters(op), step.arguments, strict=True))
        said = [(p, a.value) for p, a in paired if p.keyword_only and not _is_default(p, a.value)]
        listed = [(p, a.value) for p, a in paired if not p.keyword_only]
        while listed and _is_default(*listed[-1]):
            listed.pop()
        values = [self._value(value) for _, value in listed]
        values += [f"**{{{p.name!r}: {self._value(value)}}}" for p, value in said]
        call = f"{self._named(op._op)}({', '.join(values)})"
        targets = ", ".join(f"t{self._count + i}" for i in range(step.results))
        self._count += step.results
        returns = [str(entry.type) for entry in schema(op).returns]
        if returns == ["Tensor"]:
            return f"{targets} = {call}"
        return f"[{targets}] = flattened({call})"

    def _value(self, value: Json) -> str:
        if not tensor_indexes(value) and not (isinstance(value, dict) and "device" in value):
            return self._named(decode(value, ()))
        if isinstance(value, list):
            return f"[{', '.join(map(self._value, value))}]"
        found = tensor_indexes(value)
        if found:
            return f"t{found[0]}"
        return self._named(torch.device("cpu")) if value == {"device": "cpu"} else "t0.device"

    def _named(self, value: Any) -> str:
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name


def _is_default(parameter: Parameter, value: Json) -> bool:
    """Whether an argument need not be given: eager code rarely gives them all."""
    if parameter.required or isinstance(value, dict | list):
        return False
    return type(value) is type(parameter.default) and value == parameter.default


def _operator(step: Step) -> OpOverload:
    op = operator_of(Call(operator=step.operator, overload=step.overload, words=(),
                          arguments=(), inputs=(), outputs=()))  # fmt: skip
    names = [p.name for p in parameters(op)]
    if names != [a.name for a in step.arguments]:
        raise Unguardable(why=f"{step.operator} takes {', '.join(names)} in this version of torch")
    return op


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
