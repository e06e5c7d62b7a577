"""Where the regions of a cast are in this process: the classes whose forward, and the functions,
that are replaced while kernels are enabled.

A class's forward is replaced on the class, never on an instance: an attribute of an instance would
be copied by deepcopy, pickled with the model, and bound to the wrong module in the copy. A function
is replaced wherever a module of the process holds it under some name.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import ModuleType
from typing import Any

import torch
from torch.compiler import is_compiling

from kernelforge_engine.dispatch.instance import without_self
from kernelforge_engine.dispatch.instances import MISSED, Instance
from kernelforge_engine.dispatch.kernels import Kernel
from kernelforge_engine.dispatch.ledger import NOBODY, Ledger

OURS: dict[int, Callable[..., Any]] = {}  # the originals of what stands in now, by its id


class Target:
    """What stands in for a forward or function while its ledger has kernels. A stand-in that
    somebody else still holds after that serves nobody."""

    def __init__(self, ledger: Ledger, original: Callable[..., Any]) -> None:
        self.ledger, self.original = ledger, original
        self.view: dict[int, Instance] = {}
        self.stand_in = self._made()
        self._is_placed = False

    def serve(self, kernels: list[Kernel]) -> None:
        """Have calls served by these kernels from now on, none where there are none."""
        self.ledger.serve(kernels)
        if kernels and not self._is_placed:
            self.ledger.open(self.view, self._signature())
            OURS[id(self.stand_in)] = self.original
            self._is_placed = True
            self._place()
        elif self._is_placed and not kernels:
            self._restore()
            self._is_placed = False
            del OURS[id(self.stand_in)]
            self.ledger.close(self.view)

    def instance(self, module: torch.nn.Module | None) -> Instance:
        """What serves the calls of one module, or of a function: nobody when nothing is enabled."""
        return self.ledger.instance(module, self.view) if self._is_placed else NOBODY

    def _signature(self) -> inspect.Signature:
        raise NotImplementedError

    def _made(self) -> Callable[..., Any]:
        raise NotImplementedError

    def _place(self) -> None:
        raise NotImplementedError

    def _restore(self) -> None:
        raise NotImplementedError


class ClassTarget(Target):
    """The forward of one class, for modules of exactly that class."""

    def __init__(self, ledger: Ledger, kind: type[torch.nn.Module]) -> None:
        self._kind = kind
        self._own = "forward" in vars(kind)
        super().__init__(ledger, kind.forward)

    def _signature(self) -> inspect.Signature:
        return without_self(inspect.signature(self.original))

    def _place(self) -> None:
        self._kind.forward = self.stand_in

    def _restore(self) -> None:
        if vars(self._kind).get("forward") is not self.stand_in:
            return  # somebody else has replaced it since
        if self._own:
            self._kind.forward = self.original
        else:
            del self._kind.forward

    def _made(self) -> Callable[..., Any]:
        original, kind, view, instance_of = self.original, self._kind, self.view, self.instance

        @wraps(original)
        def forward(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if not is_compiling() and type(self) is kind:
                instance = view.get(id(self)) or instance_of(self)
                served = instance.serve(original, args, kwargs)
                if served is not MISSED:
                    return served
            return original(self, *args, **kwargs)

        return forward


class FunctionTarget(Target):
    """One function, wherever a module of this process holds it."""

    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.original)

    def _place(self) -> None:
        _replace(self.original, self.stand_in)

    def _restore(self) -> None:
        _replace(self.stand_in, self.original)  # also where a module has taken it since

    def _made(self) -> Callable[..., Any]:
        original, view, instance_of, key = self.original, self.view, self.instance, id(None)

        @wraps(original)
        def function(*args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                instance = view.get(key) or instance_of(None)
                served = instance.serve(original, args, kwargs)
                if served is not MISSED:
                    return served
            return original(*args, **kwargs)

        return function


def _replace(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    for names in namespaces():
        for name in [n for n, value in list(names.items()) if value is old]:
            names[name] = new


def namespaces() -> Iterator[dict[str, Any]]:
    """The names of every module of this process."""
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            yield vars(module)
