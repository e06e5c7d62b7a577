"""Where the regions of a cast are in this process: the classes whose forward, and the functions,
that are replaced while kernels are enabled.

A class's forward is replaced on the class, never on an instance: an attribute of an instance would
be copied by deepcopy, pickled with the model, and bound to the wrong module in the copy. A function
is replaced wherever a module of the process holds it under some name.
"""

import inspect
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import wraps
from types import ModuleType
from typing import Any

import torch
from torch.compiler import is_compiling

from kernelforge_engine.dispatch.instance import method_signature
from kernelforge_engine.dispatch.instances import MISSED, OWN, Instance, Site, seated
from kernelforge_engine.dispatch.kernels import Kernel
from kernelforge_engine.dispatch.shim import REASONS, Shim
from kernelforge_engine.errors import NotInstalled

OURS: dict[int, Callable[..., Any]] = {}  # what stands in for an original, by its id


class Target:
    """What classes and functions have in common: kernels, sites, and what was counted."""

    def __init__(self, shim: Shim, name: str, original: Callable[..., Any]) -> None:
        self.shim, self.name, self.original = shim, name, original
        self.kernels: list[Kernel] = []
        self.version: object = object()
        self.lock = threading.RLock()  # a module may go while it is held
        self.counts = dict.fromkeys((*REASONS, *OWN), 0)
        self._sites: list[Site] = []
        self._free: dict[tuple[Kernel, ...], list[Site]] = defaultdict(list)

    def serve(self, kernels: list[Kernel]) -> None:
        """Have calls served by these kernels from now on, none where there are none."""
        with self.lock:
            placed = bool(self.kernels)
            self.kernels, self.version = kernels, object()
            if kernels and not placed:
                self.place()
            elif placed and not kernels:
                self.restore()

    def place(self) -> None:
        """Stand in for the original."""
        raise NotImplementedError

    def restore(self) -> None:
        """Let the original stand where it stood."""
        raise NotImplementedError

    def misses(self) -> Counter[str]:
        """Calls that went to the model's own code, by reason."""
        with self.lock:
            found = Counter({r: count for r, count in self.counts.items() if count})
            for site in self._sites:
                found.update(self.shim.site_misses(site.number))
        return found

    def site(self, kernels: tuple[Kernel, ...]) -> Site | None:
        """A site of these kernels: one that nobody uses any more, or a new one."""
        with self.lock:
            if self._free[kernels]:
                return self._free[kernels].pop()
            try:
                made = seated(self.shim, kernels)
            except NotInstalled:
                return None
            self._sites.append(made)
        return made

    def keep(self, site: Site) -> None:
        """A site that is not used any more."""
        with self.lock:
            self._free[site.kernels].append(site)

    def gone(self, instance: Instance) -> None:
        """The module of an instance is gone."""


class ClassTarget(Target):
    """The forward of one class, for modules of exactly that class."""

    def __init__(self, shim: Shim, name: str, kind: type[torch.nn.Module]) -> None:
        super().__init__(shim, name, kind.forward)
        self.signature = method_signature(kind.forward)
        self._kind = kind
        self._own = "forward" in vars(kind)
        self._instances: dict[int, Instance] = {}
        self._stand_in = self._made()
        OURS[id(self._stand_in)] = self.original

    def place(self) -> None:
        """Replace the forward of the class."""
        self._kind.forward = self._stand_in

    def restore(self) -> None:
        """Put the forward back, unless somebody else has replaced it since."""
        if vars(self._kind).get("forward") is self._stand_in:
            if self._own:
                self._kind.forward = self.original
            else:
                del self._kind.forward
        for instance in list(self._instances.values()):
            instance.release()

    def gone(self, instance: Instance) -> None:
        """Forget an instance."""
        with self.lock:
            for key, known in list(self._instances.items()):
                if known is instance:
                    del self._instances[key]

    def instance(self, module: torch.nn.Module) -> Instance:
        """What serves the calls of one module."""
        with self.lock:
            return self._instances.setdefault(id(module), Instance(self, self.original, module))

    def _made(self) -> Callable[..., Any]:
        original, kind, instances = self.original, self._kind, self._instances
        instance_of = self.instance

        @wraps(original)
        def forward(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if not is_compiling() and type(self) is kind:
                instance = instances.get(id(self)) or instance_of(self)
                served = instance.serve(args, kwargs)
                if served is not MISSED:
                    return served
            return original(self, *args, **kwargs)

        return forward


class FunctionTarget(Target):
    """One function, wherever a module of this process holds it."""

    def __init__(self, shim: Shim, name: str, original: Callable[..., Any]) -> None:
        super().__init__(shim, name, original)
        self.signature = inspect.signature(original)
        self.instance = Instance(self, original)
        self.stand_in = self._made()
        OURS[id(self.stand_in)] = original

    def place(self) -> None:
        """Replace the function wherever it is."""
        _replace(self.original, self.stand_in)

    def restore(self) -> None:
        """Put the function back, also where a module has taken the stand-in since."""
        _replace(self.stand_in, self.original)
        self.instance.release()

    def _made(self) -> Callable[..., Any]:
        original, instance = self.original, self.instance

        @wraps(original)
        def function(*args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                served = instance.serve(args, kwargs)
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
