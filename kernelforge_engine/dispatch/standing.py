"""A module or function that is called as a region's call was, without the model that made it.

What a hit costs is timed on it.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from kernelforge_engine.calls import Argument, Call, Region
from kernelforge_engine.dispatch.instance import PLAIN
from kernelforge_engine.dispatch.kernels import Kernel
from kernelforge_engine.dispatch.ledger import Ledger
from kernelforge_engine.dispatch.regions import values_of
from kernelforge_engine.dispatch.shim import Shim
from kernelforge_engine.dispatch.targets import ClassTarget, FunctionTarget, Target
from kernelforge_engine.plans import ResolvedPlan


@contextmanager
def served(
    shim: Shim, call: Call, region: Region, plan: ResolvedPlan, inputs: Sequence[Tensor]
) -> Iterator[Callable[[], Any]]:
    """What calls a region on these inputs, and has it served by a plan without code."""
    split = _split(call.arguments[:-1]) if region.kind == "module" else len(call.arguments) - 1
    renamed = [replace(a, name=f"a{i}") for i, a in enumerate(call.arguments)]
    kernel = Kernel(shim, replace(call, arguments=tuple(renamed)), region, plan)
    kernel.scope.add(None)
    names, values = [a.name for a in renamed], list(values_of(call, inputs).values())
    target, module, hit = (
        _module(shim, names[:split], dict(zip(names[split:], values[split:], strict=False)), call)
        if region.kind == "module"
        else _function(shim, names[:split])
    )
    target.serve([kernel])
    kernel.turn(on=True)
    try:
        target.instance(module).trust(split)
        yield lambda: hit(*values[:split])
    finally:
        kernel.turn(on=False)
        target.serve([])


def _module(
    shim: Shim, names: Sequence[str], own: dict[str, Any], call: Call
) -> tuple[Target, torch.nn.Module | None, Callable[..., Any]]:
    """A module with attributes and tensors of its own, and with as many parts as there were."""
    kind = type("Standing", (torch.nn.Module,), {"forward": _nothing(["self", *names])})
    module: torch.nn.Module = kind()
    for name, value in own.items():
        is_tensor = isinstance(value, Tensor)
        setattr(module, name, torch.nn.Parameter(value, False) if is_tensor else value)
    for number in range(len({a.name.rpartition(".")[0] for a in call.arguments} - {""})):
        module.add_module(f"part{number}", torch.nn.Module())
    return ClassTarget(Ledger(shim, ""), kind), module, lambda *args: module.forward(*args)


def _function(
    shim: Shim, names: Sequence[str]
) -> tuple[Target, torch.nn.Module | None, Callable[..., Any]]:
    target = FunctionTarget(Ledger(shim, ""), _nothing(names))
    return target, None, target.stand_in


def _nothing(names: Sequence[str]) -> Callable[..., Any]:
    """A function with arguments of these names."""

    def function(*_: Any) -> None:
        return None

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _split(arguments: Sequence[Argument]) -> int:
    """How many of a module's values were given to its forward: which are its own is not recorded,
    but these come last, plain ones before tensors, and a tensor is given first."""
    at = len(arguments)
    while at > 1 and isinstance(arguments[at - 1].value, dict):
        at -= 1
    while at > 1 and type(arguments[at - 1].value) in PLAIN:
        at -= 1
    return at
