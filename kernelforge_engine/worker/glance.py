"""A cheap identity of a call: equal glances have equal guard words, which cost more to compute."""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor
from torch._C import _dispatch_keys

from kernelforge_engine.dispatch.encode import PLAIN

Glance = tuple[Any, ...]

_AS_IT_IS = (bool, int, str, type(None), torch.dtype, torch.device, torch.layout,
             torch.memory_format)  # fmt: skip


class _NoGlance(Exception):
    """A value whose words must be asked for."""


def glance(mark: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Glance | None:
    """What tells this call from others, or None where only its words can tell.

    `mark` stands for what is called: the id() of an overload, whose own hash is slow.
    """
    try:
        facts = [_fact(value) for value in args]
        named = [(name, _fact(value)) for name, value in kwargs.items()]
    except _NoGlance:
        return None
    return (mark, *facts, *named)


def _fact(value: Any) -> Any:
    kind = type(value)
    known = _FACTS.get(kind)
    if known is None:
        raise _NoGlance
    return known(value)


def _tensor(tensor: Tensor) -> Any:
    if _dispatch_keys(tensor).raw_repr() & ~PLAIN or tensor.layout != torch.strided:
        raise _NoGlance
    aligned = tensor.data_ptr() & 15 == 0
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.device, aligned


def _plain(value: Any) -> Any:
    """With its type: 1, 1.0 and True are equal and have different words."""
    return type(value), value


def _float(value: float) -> Any:
    return float, value.hex()


def _items(values: Any) -> Any:
    return (list, *map(_fact, values))


_FACTS: dict[type, Callable[[Any], Any]] = {
    Tensor: _tensor,
    torch.nn.Parameter: _tensor,
    float: _float,
    list: _items,
    tuple: _items,
    **dict.fromkeys(_AS_IT_IS, _plain),
}
