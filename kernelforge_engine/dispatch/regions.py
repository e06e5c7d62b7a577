"""From the live call of a region to its Call record: what a runtime can tell such a call by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from kernelforge_engine.calls import Argument, Call, Json, OutputSpec, Region
from kernelforge_engine.cast.words import call_words
from kernelforge_engine.dispatch.encode import (
    Unguardable,
    checked,
    decode,
    encode_value,
    refuse_devices,
    spec_of,
)
from kernelforge_engine.dispatch.guard import autocast_depth, refuse_views

AGAIN = "same as in"  # and the number of an input: that very tensor is given once more
PROGRAM = "program"


@dataclass(frozen=True, kw_only=True)
class Entered:
    """What a region was called with: its arguments as data, and every tensor among them once.

    `numbers` are those of the tensors by their id, for a tensor that came in twice too.
    """

    arguments: tuple[Argument, ...]
    tensors: tuple[Tensor, ...]
    numbers: Mapping[int, int]


def entered(values: Mapping[str, Any]) -> Entered:
    """The arguments of a region: those of its forward or function, attributes, parameters.

    Raises:
        Unguardable: no tensor goes in, or a value that no guard can cover.
    """
    if autocast_depth() > 0:
        raise Unguardable(why="autocast acts on the operators inside it")
    tensors: list[Tensor] = []
    numbers: dict[int, int] = {}
    places: dict[object, int] = {}

    def named(tensor: Tensor) -> Json:
        index = places.setdefault(_place(checked(tensor)), len(tensors))
        numbers[id(tensor)] = index
        if index < len(tensors):
            return f"{AGAIN}{index}"
        tensors.append(tensor)
        return {"tensor": index}

    arguments = tuple(Argument(name=n, value=_encoded(v, named)) for n, v in values.items())
    if not tensors:
        raise Unguardable(why="no tensor goes in")
    refuse_devices(tensors)
    return Entered(arguments=arguments, tensors=tuple(tensors), numbers=numbers)


def describe_region(name: str, given: Entered, outputs: Sequence[Tensor], region: Region) -> Call:
    """The record of one call of a region.

    Raises:
        Unguardable: nothing comes out, or something that a kernel cannot allocate and fill.
    """
    if not outputs:
        raise Unguardable(why="no tensor comes out")
    for output in outputs:  # parts of one tensor may come out, as chunk() makes them
        refuse_views([output], given.tensors)
    _refuse_overlap(outputs)
    program = Argument(name=PROGRAM, value=region.digest)
    call = Call(
        operator=f"region::{name}",
        overload="",
        words=(),
        arguments=(*given.arguments, program),
        inputs=tuple(spec_of(tensor) for tensor in given.tensors),
        # A fresh output is always aligned, also where the region returns a part of a larger one.
        outputs=tuple(OutputSpec(tensor=replace(spec_of(t), aligned=True)) for t in outputs),
        region=region,
    )
    return replace(call, words=call_words(call))


def values_of(call: Call, tensors: Sequence[Tensor]) -> dict[str, Any]:
    """The live arguments of a region's call on these tensors, in the order of `call.inputs`."""
    return {a.name: _live(a.value, tensors) for a in call.arguments[:-1]}  # without its program


def _live(value: Json, tensors: Sequence[Tensor]) -> Any:
    if isinstance(value, list):
        return [_live(item, tensors) for item in value]
    if isinstance(value, str) and value.startswith(AGAIN):
        return tensors[int(value.removeprefix(AGAIN))]
    return decode(value, tensors)


def _refuse_overlap(outputs: Sequence[Tensor]) -> None:
    """Refuse outputs of which two hold the same element."""
    by_memory: dict[int, list[Tensor]] = {}
    for output in outputs:
        by_memory.setdefault(output.untyped_storage().data_ptr(), []).append(output)
    for parts in by_memory.values():
        if len(parts) < 2 or not parts[0].numel():
            continue
        size = parts[0].element_size()
        first = min(part.data_ptr() for part in parts)
        steps = [(part.data_ptr() - first) // size for part in parts]
        extents = [spec_of(part).extent for part in parts]
        held = torch.zeros(max(map(sum, zip(steps, extents, strict=True))), dtype=torch.uint8)
        for part, step in zip(parts, steps, strict=True):
            held.as_strided(part.shape, part.stride(), step).add_(1)
        if int(held.max()) > 1 or len({part.element_size() for part in parts}) > 1:
            raise Unguardable(why="two outputs hold the same element")


def _place(tensor: Tensor) -> object:
    """Equal for tensors that are the same memory in the same layout."""
    if not tensor.numel():
        return id(tensor)
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()


def _encoded(value: Any, named: Any) -> Json:
    encoded = encode_value(value, named)
    if isinstance(value, str) and value.startswith(AGAIN):
        raise Unguardable(why="a text among its arguments means something else here")
    return encoded
