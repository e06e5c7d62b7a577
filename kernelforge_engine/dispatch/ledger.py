"""What is known of one class or function whose calls kernels may serve.

It outlives the time in which kernels are enabled, and refers neither to the class nor to its code,
so that it keeps no model alive.
"""

import inspect
import threading
from collections import Counter, defaultdict

import torch

from kernelforge_engine.dispatch.instances import OWN, Instance
from kernelforge_engine.dispatch.kernels import Kernel
from kernelforge_engine.dispatch.known import Site, seated
from kernelforge_engine.dispatch.shim import REASONS, Shim
from kernelforge_engine.errors import NotInstalled

NONE = inspect.Signature()


class Ledger:
    """Kernels, instances, sites, and what was counted. `signature` is that of the forward or
    function, without what it is a method of."""

    def __init__(self, shim: Shim, name: str) -> None:
        self.shim, self.name = shim, name
        self.kernels: list[Kernel] = []
        self.version: object = object()
        self.signature = NONE
        self.counts = dict.fromkeys((*REASONS, *OWN), 0)
        self.lock = threading.RLock()  # a module may go while it is held
        self._instances: dict[int, Instance] = {}
        self._views: list[dict[int, Instance]] = []
        self._sites: list[Site] = []
        self._free: dict[tuple[Kernel, ...], list[Site]] = defaultdict(list)

    def serve(self, kernels: list[Kernel]) -> None:
        """Have calls served by these kernels from now on."""
        with self.lock:
            self.kernels, self.version = kernels, object()

    def open(self, view: dict[int, Instance], signature: inspect.Signature) -> None:
        """Keep a view of instances, by the id of their modules, free of those that are gone."""
        with self.lock:
            self.signature = signature
            self._views.append(view)

    def close(self, view: dict[int, Instance]) -> None:
        """Clear a view, and let go of all modules."""
        with self.lock:
            self.signature = NONE
            self._views = [other for other in self._views if other is not view]
            view.clear()
            instances = list(self._instances.values())
        for instance in instances:  # without the lock, which calls take while they hold their own
            instance.release()

    def instance(self, module: torch.nn.Module | None, view: dict[int, Instance]) -> Instance:
        """What serves the calls of one module, or of a function; it is in the view from now on."""
        key = id(module)
        with self.lock:
            if key not in self._instances:
                self._instances[key] = Instance(self, module)
            view[key] = self._instances[key]
            return view[key]

    def gone(self, instance: Instance) -> None:
        """The module of an instance is gone."""
        with self.lock:
            for view in (self._instances, *self._views):
                for key in [k for k, known in view.items() if known is instance]:
                    del view[key]

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


class _Closed(Ledger):
    """A ledger in which nothing is written."""

    def __init__(self) -> None:
        self.kernels, self.version, self.counts = [], object(), {}


NOBODY = Instance(_Closed())  # serves no call
