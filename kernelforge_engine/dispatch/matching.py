"""Finding a region in the operators of a graph: the same program on tensors of the same kind."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from kernelforge_engine import codec
from kernelforge_engine.calls import Call, Json, Region, Step, TensorSpec
from kernelforge_engine.dispatch.encode import (
    Unguardable,
    encode_value,
    parameters,
    schema,
    schema_values,
)
from kernelforge_engine.dispatch.recording import ABSENT, flattened
from kernelforge_engine.dispatch.traced import Ran, Traced


@dataclass(frozen=True, kw_only=True, eq=False)
class Match:
    """A region in a graph: its nodes, the one that ends it, those that give its inputs, and the
    tensors it returns."""

    nodes: list[Node]
    last: Node
    inputs: list[Node]
    returned: list[Tensor]


class _Other(Exception):
    """It is another program."""


def matched(traced: Traced, start: int, call: Call, region: Region) -> Match | None:
    """The region that begins with an operator of a graph, if it is there and can be replaced."""
    ran = traced.ran[start : start + len(region.steps)]
    if len(ran) < len(region.steps):
        return None
    try:
        program = _Program(call, region)
        for step, one in zip(region.steps, ran, strict=True):
            program.follow(step, one)
        return _placed(traced, start, [one for one in ran if one], program)
    except (_Other, Unguardable):
        return None


class _Program:
    """A program being compared, its tensors by their numbers as a recording counts them."""

    def __init__(self, call: Call, region: Region) -> None:
        self._call, self._region = call, region
        self._count = len(call.inputs)
        self._numbers: dict[int, int] = {}
        self.tensors: dict[int, Tensor] = {}

    def follow(self, step: Step, ran: Ran | None) -> None:
        """Compare one operator with a step, and count what it returned."""
        if ran is None or (schema(ran.op).name, schema(ran.op).overload_name) != (
            step.operator,
            step.overload,
        ):
            raise _Other
        if [a.name for a in step.arguments] != [p.name for p in parameters(ran.op)]:
            raise _Other
        wanted = [argument.value for argument in step.arguments]
        values = schema_values(ran.op, ran.args, ran.kwargs)
        said = [_encoded(v, self._named(w)) for v, w in zip(values, wanted, strict=True)]
        if codec.dumps(said) != codec.dumps(wanted):  # as text, in which 1 is neither 1.0 nor True
            raise _Other
        for result in flattened(ran.output):
            self._remember(result, self._count)
            self._count += 1

    def inputs(self) -> list[Tensor]:
        """What the region is given."""
        found = [self.tensors.get(number) for number in range(len(self._call.inputs))]
        if None in [None if t is None else 0 for t in found]:
            raise _Other
        return [t for t in found if t is not None]

    def returned(self) -> list[Tensor]:
        """What it returns, which must have the layout of what was judged."""
        found = [self.tensors[number] for number in self._region.returns if number != ABSENT]
        specs = [replace(output.tensor, aligned=True) for output in self._call.outputs]
        if [fake_spec(t) for t in found] != specs:
            raise _Other
        return found

    def _named(self, wanted: Json) -> Any:
        """What says the number of a tensor; inputs get theirs where a step asks for them."""
        expected = iter(_tensor_numbers(wanted))

        def named(tensor: Tensor) -> Json:
            number = self._numbers.get(id(tensor))
            if number is None:
                number = self._bound(tensor, next(expected, -1))
            else:
                next(expected, None)
            return {"tensor": number}

        return named

    def _bound(self, tensor: Tensor, number: int) -> int:
        inputs = self._call.inputs
        if not 0 <= number < len(inputs) or number in self.tensors:
            raise _Other
        if fake_spec(tensor) != replace(inputs[number], aligned=True):
            raise _Other
        self._remember(tensor, number)
        return number

    def _remember(self, tensor: Any, number: int) -> None:
        if isinstance(tensor, Tensor):
            self._numbers[id(tensor)] = number
            self.tensors[number] = tensor


def _encoded(value: Any, named: Any) -> Json:
    if isinstance(value, torch.device):
        return {"device": value.type}
    if isinstance(value, list | tuple):
        return [_encoded(item, named) for item in value]
    return encode_value(value, named)


def _tensor_numbers(value: Json) -> list[int]:
    """The tensors of a step's argument in order."""
    if isinstance(value, list):
        return [number for item in value for number in _tensor_numbers(item)]
    number = value.get("tensor") if isinstance(value, dict) else None
    return [number] if isinstance(number, int) else []


def fake_spec(tensor: Tensor) -> TensorSpec:
    """The metadata of a tensor that does not exist yet; what Inductor allocates is aligned."""
    return TensorSpec(
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()),
        device=tensor.device.type,
        aligned=True,
    )


def _placed(traced: Traced, start: int, ran: Sequence[Ran], program: _Program) -> Match:
    """The nodes of a program, if nothing else needs what happens inside."""
    nodes = {one.node for one in ran}
    around = (traced.ran[start - 1 : start] if start else []) + traced.ran[start + len(ran) :][:1]
    if any(one is not None and one.node in nodes for one in around):
        raise _Other
    inputs, returned = program.inputs(), program.returned()
    makers = _makers(traced)
    given = [makers.get(id(tensor)) for tensor in inputs]
    needed = [node for node in given if node is not None and node not in nodes]
    if len(needed) < len(inputs) or _needs_gradients(ran, needed):
        raise _Other
    last = max(nodes, key=traced.order.__getitem__)
    for node in sorted(traced.idle, key=traced.order.__getitem__):
        if any(other in nodes for other in node.all_input_nodes):
            nodes.add(node)
    kept = {id(tensor) for tensor in returned}
    for node in nodes:
        outside = [user for user in node.users if user not in nodes]
        if outside and id(traced.values[node]) not in kept:
            raise _Other
        if any(traced.order[user] < traced.order[last] for user in outside):
            raise _Other
    ordered = sorted(nodes, key=traced.order.__getitem__)
    return Match(nodes=ordered, last=last, inputs=needed, returned=returned)


def _makers(traced: Traced) -> dict[int, Node]:
    """The first node that gives each tensor, by the tensor's id."""
    makers: dict[int, Node] = {}
    for node, value in traced.values.items():
        if isinstance(value, Tensor):
            makers.setdefault(id(value), node)
    return makers


def _needs_gradients(ran: Sequence[Ran], inputs: Sequence[Node]) -> bool:
    wanted = any(node.meta["example_value"].requires_grad for node in inputs)
    return wanted and any(one.records for one in ran)
