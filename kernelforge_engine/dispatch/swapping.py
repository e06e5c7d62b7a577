"""The regions that kernels serve in this process: found by name, and put back as they were."""

import inspect
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from types import FunctionType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch

from kernelforge_engine.calls import Region
from kernelforge_engine.dispatch.instance import source_of
from kernelforge_engine.dispatch.kernels import Kernel
from kernelforge_engine.dispatch.ledger import Ledger
from kernelforge_engine.dispatch.shim import Shim
from kernelforge_engine.dispatch.targets import (
    OURS,
    ClassTarget,
    FunctionTarget,
    Target,
    namespaces,
)

T = TypeVar("T")


class Regions:
    """Which kernels are enabled; several casts may serve one region, the newest first.

    A class has a ledger for each forward it had: whoever replaces one makes another region of it.
    """

    def __init__(self, shim: Shim) -> None:
        self._shim = shim
        self._lock = threading.RLock()
        self._targets: dict[Any, Target] = {}  # those with kernels, and what they stand in for
        self._enabled: list[Kernel] = []
        self._ledgers: WeakKeyDictionary[Any, WeakKeyDictionary[Any, Ledger]] = WeakKeyDictionary()
        self._compiled: dict[str, Ledger] = {}
        self._kept: list[Ledger] = []  # of classes that are gone too: what was counted stays

    def enable(self, kernels: Sequence[Kernel], model: object) -> list[Kernel]:
        """Serve the modules of a model, or with None those of the whole process; functions are
        always the whole process's. Returns the kernels whose region is not found here."""
        root = model if isinstance(model, torch.nn.Module) else None
        with self._lock:
            found: dict[object, list[Target]] = {}
            lost = []
            for scope in {kernel.scope for kernel in kernels}:
                scope.add(root)
            for kernel in kernels:
                key = kernel.region.kind, kernel.region.owner
                if key not in found:
                    found[key] = list(self._found(kernel))
                kernel.targets.update(found[key])
                kernel.turn(on=bool(found[key]))
                if not found[key]:
                    lost.append(kernel)
            again = set(kernels)
            self._enabled = [k for k in self._enabled if k not in again]
            self._enabled += [k for k in kernels if k.enabled]
            for target in {t for targets in found.values() for t in targets}:
                target.serve(self._of(target))
        return lost

    def disable(self, kernels: Sequence[Kernel]) -> None:
        """Serve no more calls with these."""
        with self._lock:
            for kernel in kernels:
                kernel.turn(on=False)
                kernel.scope.clear()
                kernel.targets.clear()
            gone = set(kernels)
            self._enabled = [k for k in self._enabled if k not in gone]
            for key, target in list(self._targets.items()):
                kernels = self._of(target)
                if gone.intersection(target.ledger.kernels):
                    target.serve(kernels)
                if not kernels:
                    del self._targets[key]

    def misses(self) -> dict[str, dict[str, int]]:
        """Calls of regions that went to the model's own code, by region and reason."""
        found: dict[str, dict[str, int]] = {}
        with self._lock:
            for ledger in self._kept:
                for reason, count in ledger.misses().items():
                    reasons = found.setdefault(ledger.name, {})
                    reasons[reason] = reasons.get(reason, 0) + count
        return found

    def compiled(self, operator: str) -> Ledger:
        """Where the calls of a region inside compiled code are counted."""
        with self._lock:
            if operator not in self._compiled:
                self._compiled[operator] = Ledger(self._shim, operator)
                self._kept.append(self._compiled[operator])
            return self._compiled[operator]

    def _of(self, target: Target) -> list[Kernel]:
        return [kernel for kernel in self._enabled if target in kernel.targets]

    def _found(self, kernel: Kernel) -> Iterator[Target]:
        region, made = kernel.region, self._targets
        if region.kind == "module":
            kinds = subclasses() if kernel.scope.everywhere else kernel.scope.kinds()
            for kind in _named(filter(_is_plain, kinds), kernel.name, region):
                forward = inspect.getattr_static(kind, "forward")
                key = kind, OURS.get(id(forward), forward)
                if key not in made:
                    made[key] = ClassTarget(self._ledger(kernel, *key), kind)
                yield made[key]
        else:
            for function in _functions(kernel.name, region):
                if function not in made:
                    made[function] = FunctionTarget(
                        self._ledger(kernel, function, function), function
                    )
                yield made[function]

    def _ledger(self, kernel: Kernel, place: object, original: object) -> Ledger:
        ledgers = self._ledgers.setdefault(place, WeakKeyDictionary())
        if original not in ledgers:
            ledgers[original] = Ledger(self._shim, kernel.call.operator)
            self._kept.append(ledgers[original])
        return ledgers[original]


@cache
def regions(shim: Shim) -> Regions:
    """The regions of this process, which has one shim."""
    return Regions(shim)


def subclasses() -> set[type[torch.nn.Module]]:
    """Every class of modules that this process knows."""
    found: set[type[torch.nn.Module]] = set()
    waiting: list[type[torch.nn.Module]] = [torch.nn.Module]
    while waiting:
        for kind in type.__subclasses__(waiting.pop()):
            if kind not in found:
                found.add(kind)
                waiting.append(kind)
    return found


def _named(candidates: Iterable[T], name: str, region: Region) -> list[T]:
    """The classes or functions with the name of a region: its very own, else those with its source
    whose module has another name than where it was captured. What they do is found out when they
    are called."""
    named = [c for c in candidates if getattr(c, "__name__", "") == name]
    own = [c for c in named if f"{c.__module__}.{_qualname(c)}" == region.owner]
    return own or [
        c
        for c in named
        if f".{region.owner}".endswith(f".{_qualname(c)}") and _source(c) == region.source
    ]


def _source(named: Any) -> str:
    text = inspect.getattr_static(named, "forward") if isinstance(named, type) else named
    return source_of(inspect.unwrap(text))


def _qualname(named: Any) -> str:
    return str(getattr(named, "__qualname__", ""))


def _is_plain(kind: type) -> bool:
    """Whether its forward is one of Python, found on the class."""
    if issubclass(kind, torch.jit.ScriptModule):
        return False
    return isinstance(inspect.getattr_static(kind, "forward", None), FunctionType)


def _functions(name: str, region: Region) -> list[FunctionType]:
    """The functions that modules of this process hold by the name of a region, once each."""
    found: dict[int, FunctionType] = {}
    for names in namespaces():
        value = names.get(name)
        function = OURS.get(id(value), value)
        if isinstance(function, FunctionType):
            found[id(function)] = function
    return _named(found.values(), name, region)
