"""The arguments of a region's call as Python can compare them fastest: tensors apart, for the shim
to compare, and a tuple of facts that is equal only where all other guard words are."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from kernelforge_engine.calls import Json
from kernelforge_engine.dispatch.encode import decode
from kernelforge_engine.dispatch.instance import spread
from kernelforge_engine.dispatch.regions import AGAIN

Facts = tuple[object, ...]
AS_THEY_ARE = (bool, int, str, torch.dtype, torch.memory_format, torch.layout)


def sift(values: Sequence[Any], tensors: list[Tensor], facts: list[object]) -> str | None:
    """Sort values into tensors and facts; why that cannot be done, in a word of Counters."""
    for value in values:
        kind = type(value)
        if kind is Tensor or kind is Parameter:
            tensors.append(value)
            facts.append(Tensor)
        elif value is None:
            facts.append(None)
        elif kind in AS_THEY_ARE:  # 1 and True are equal and have different words
            facts.append(kind)
            facts.append(value)
        elif kind is float:  # 0.0 and -0.0 too
            facts.append(kind)
            facts.append(value.hex())
        elif isinstance(value, list | tuple):
            facts.append(list)
            facts.append(len(value))
            if why := sift(value, tensors, facts):
                return why
        else:
            return "key_set" if isinstance(value, Tensor) else "unsupported_argument"
    return None


def facts_of(values: Sequence[Json]) -> Facts:
    """The facts of recorded arguments: equal to what sift() makes of live ones."""
    facts: list[object] = []
    for value in values:
        if isinstance(value, list):
            facts += [list, len(value), *facts_of(value)]
        elif _is_tensor(value):
            facts.append(Tensor)
        else:
            sift([decode(value, ())], [], facts)
    return tuple(facts)


def _is_tensor(value: Json) -> bool:
    if isinstance(value, str):
        return value.startswith(AGAIN)
    return isinstance(value, dict) and "tensor" in value


class _Mark(int):
    """The position of an argument."""


@dataclass(frozen=True)
class Binding:
    """How arguments that are passed in one way become those of a signature, defaults filled."""

    names: tuple[str, ...]
    defaults: tuple[Any, ...]
    pick: Callable[[Sequence[Any]], Sequence[Any]] | None

    def values(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """The values by `names`, as `bound` of a capture gives them."""
        if self.pick is None:
            return args
        return self.pick((*args, *kwargs.values(), *self.defaults))


def binding(signature: inspect.Signature, count: int, keywords: Sequence[str]) -> Binding | None:
    """The binding of `count` positional arguments and of keywords; None where they do not fit."""
    marks = [_Mark(i) for i in range(count + len(keywords))]
    try:
        found = signature.bind(*marks[:count], **dict(zip(keywords, marks[count:], strict=True)))
    except TypeError:
        return None
    found.apply_defaults()
    rest = [p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD]
    values = spread(dict(found.arguments), rest[0] if rest else None)
    defaults: list[Any] = []
    places: list[int | tuple[int, ...]] = []
    for value in values.values():
        if isinstance(value, _Mark):
            places.append(int(value))
        elif isinstance(value, tuple) and any(isinstance(item, _Mark) for item in value):
            places.append(tuple(int(item) for item in value))
        else:
            places.append(len(marks) + len(defaults))
            defaults.append(value)
    return Binding(tuple(values), tuple(defaults), _picking(places, count))


def _picking(
    places: Sequence[int | tuple[int, ...]], count: int
) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """What puts values into the order of a signature, None where they are in it already."""
    if list(places) == list(range(count)):
        return None
    plain = [place for place in places if isinstance(place, int)]
    if len(plain) == len(places) > 1:
        return itemgetter(*plain)

    def pick(values: Sequence[Any]) -> Sequence[Any]:
        return [
            values[place] if isinstance(place, int) else tuple(values[i] for i in place)
            for place in places
        ]

    return pick
