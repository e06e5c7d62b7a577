"""What a region of a running model depends on: the arguments of its forward or function, the plain
attributes of its module, and the module's parameters and buffers."""

import inspect
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

from kernelforge_engine.dispatch.encode import Unguardable

PLAIN = (bool, int, float)


def attributes_of(module: torch.nn.Module) -> dict[str, bool | int | float]:
    """The plain public attributes of a module, which may decide what it computes."""
    held = vars(module).items()
    return {n: v for n, v in held if type(v) in PLAIN and n[0] != "_" and n != "training"}


def tensors_of(module: torch.nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a module, those of its parts included."""
    return dict(module.named_parameters()) | dict(module.named_buffers())


def all_values(
    given: Mapping[str, Any], attributes: Mapping[str, Any], tensors: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything a region depends on: its arguments, then attributes, then parameters and buffers;
    a name that stands twice gets a prefix that no expression can spell."""
    found = dict(given)
    for name, value in (*attributes.items(), *tensors.items()):
        found[f"self.{name}" if name in found else name] = value
    return found


@cache
def method_signature(method: Callable[..., Any]) -> inspect.Signature:
    """The signature of a method without what it is a method of."""
    return without_self(inspect.signature(method))


def without_self(signature: inspect.Signature) -> inspect.Signature:
    """The signature of a method without what it is a method of."""
    return signature.replace(parameters=[*signature.parameters.values()][1:])


def bound(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The arguments of a forward by the names of its parameters, defaults filled.

    Raises:
        Unguardable: they cannot be told, or something else happens before the forward.
    """
    if kwargs is None:
        raise Unguardable(why="its keyword arguments cannot be seen in this version of torch")
    if module._forward_pre_hooks:
        raise Unguardable(why="it has hooks that run before its forward")
    try:
        if "forward" in vars(module):
            found = inspect.signature(module.forward).bind(*args, **kwargs)
        else:
            found = method_signature(type(module).forward).bind(*args, **kwargs)
    except (AttributeError, TypeError, ValueError) as error:  # TorchScript's class has no forward
        raise Unguardable(why="its forward has no signature that fits its call") from error
    found.apply_defaults()
    last = [*found.signature.parameters.values()][-1:]
    keywords = [p.name for p in last if p.kind is p.VAR_KEYWORD]
    return spread(found.arguments, keywords[0] if keywords else None)


def spread(values: dict[str, Any], keywords: str | None) -> dict[str, Any]:
    """The values, with those of `**kwargs`, which come last, under their own names."""
    if keywords is not None:
        values |= values.pop(keywords)
    return values


def source_of(function: Callable[..., Any] | None) -> str:
    """The text of a function, empty where it cannot be read."""
    try:
        return textwrap.dedent(inspect.getsource(function)) if function else ""
    except (OSError, TypeError):
        return ""
