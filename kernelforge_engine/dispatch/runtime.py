"""A loaded cast: its kernels run inside eager torch where the evidence covers a call, and every
other call goes to eager and is counted.

    with kernelforge_engine.cast.load("model.cast") as cast:
        model(x)
    cast.counters()
"""

import os
import threading
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar, overload

import torch

from kernelforge_engine.calls import Call
from kernelforge_engine.cast.keys import Trusted
from kernelforge_engine.cast.manifest import CastFile, Entry, read
from kernelforge_engine.cast.options import CudaGraph
from kernelforge_engine.dispatch import shim as shim_module
from kernelforge_engine.dispatch.calling import Replays, asked_for
from kernelforge_engine.dispatch.compiling import compiling
from kernelforge_engine.dispatch.kernels import Kernel, Scope
from kernelforge_engine.dispatch.loading import Inactive, Loader
from kernelforge_engine.dispatch.replaying import Graphs
from kernelforge_engine.dispatch.shim import Handle, Shim
from kernelforge_engine.dispatch.state import kernels_changed
from kernelforge_engine.dispatch.swapping import regions
from kernelforge_engine.errors import BadOption, NotInstalled

SWITCH = "KERNELFORGE_DISABLE"

Model = TypeVar("Model")
Key = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Served:
    """One kernel of a cast; `inactive` says why it serves no call, or is None.

    Of its hits so many were `compared` with eager, and none differed by more than `worst` times the
    root mean square of eager's answer.
    """

    node_id: str
    operator: str
    hits: int
    inactive: str | None
    compared: int = 0
    worst: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Counters:
    """What a cast has done in this process.

    `dispatch` says what decides about calls: `native`, the compiled shim; `python`, the slower one
    for a machine without a C++ compiler; or None while the cast is switched off.

    `fallbacks` counts calls of its operators that went to eager, by operator and reason: `guard`
    (no variant matches), `overlap`, `autograd`, `key_set` (tracing, a subclass, a transform,
    autocast around a composite operator or a region), `unsupported_argument`, `device` (not loaded
    there). Regions have more: `first_call` (recorded, to see that it does what the kernel was
    judged on), `program` (it does something else), `hooks` (of modules inside), `changing` (its
    attributes change from call to call), `compiled` (counts graphs: one that was compiled holds it
    and wants gradients, has sizes that vary, or runs something else than what was judged). Casts
    that are enabled together and share an operator or a region share its fallbacks. `graphs` tells
    of models that are replayed as CUDA graphs.
    """

    enabled: bool
    dispatch: Literal["native", "python"] | None
    disabled_by: str | None
    torch_exported: str
    torch_running: str
    served: tuple[Served, ...]
    fallbacks: dict[str, dict[str, int]]
    graphs: Graphs = field(default_factory=Graphs)

    @property
    def hits(self) -> int:
        """Calls served by all kernels together."""
        return sum(s.hits for s in self.served)


class Cast:
    """A cast in this process. Operators are hooked process-wide, for every model and thread;
    regions are served in the modules of a model, or in the whole process too."""

    def __init__(self, file: CastFile, cache: Path) -> None:
        self.file = file
        self._cache = cache
        self._lock = threading.RLock()
        self._shim: Shim | None = None
        self._loader: Loader | None = None
        self._handles: dict[Key, Handle] = {}
        self._scope = Scope()
        self._kernels: dict[Key, Kernel] = {}  # of regions, made once
        self._regions: dict[Key, Kernel] = {}  # those that are enabled
        self._inactive: dict[Key, str] = {}
        self._hits: Counter[Key] = Counter()
        self._fallbacks: Counter[tuple[str, str]] = Counter()
        self._compared: dict[Key, tuple[int, float]] = {}
        self._before: Counter[tuple[str, str]] = Counter()
        self._compiled: list[Call] = []
        self._compiled_regions: list[Kernel] = []
        self._replays = Replays()
        self._enabled = False
        if not _switched_off():
            self._prepare()

    @overload
    def enable(self, *, without: Collection[str] = (), shadow: float = 0.0) -> None: ...
    @overload
    def enable(
        self,
        model: Model,
        *,
        without: Collection[str] = (),
        shadow: float = 0.0,
        cuda_graph: bool | CudaGraph = False,
    ) -> Model: ...
    def enable(
        self,
        model: Model | None = None,
        *,
        without: Collection[str] = (),
        shadow: float = 0.0,
        cuda_graph: bool | CudaGraph = False,
    ) -> Model | None:
        """Serve calls from now on; `model` is returned as it is.

        Operators are served in the whole process. Regions are served in the modules that `model`
        has now or, without a model or where it is no torch.nn.Module, in every module whose class
        has the name of one; enabling it again with another model adds that one's. Functions that
        are regions are replaced in every Python module that holds them. In what torch.compile makes
        meanwhile a region is known by its program, whichever model it is of.

        Does nothing under KERNELFORGE_DISABLE=1. On CUDA, call it after the model was moved to its
        devices and outside of graph captures. Kernels of the nodes `without` stay out until the
        next enable; that of a cast which is enabled already changes nothing.

        With `shadow` that share of the hits of operators, of all casts, is run by eager as well and
        compared; counters() shows what was found. Calls in place and those recorded into a CUDA
        graph are left out, and so are regions.

        With `cuda_graph` the calls of `model` are replayed. The first one with a signature runs
        watched, without kernels, and is recorded into a CUDA graph with them; later ones copy their
        tensors in, replay it, and return copies of what comes out, which no later call overwrites.
        A replay repeats the work of the device only: what the forward does in Python is not done
        again, and tensors that are neither arguments nor the model's are read where they were. A
        call that cannot be replayed, on the CPU above all, runs as before, and counters().graphs
        says how many did and why. CudaGraph(...) instead of True says more.

        Raises:
            BadOption: `shadow` is no share, or `cuda_graph` cannot be had: without a
                torch.nn.Module, with a limit below 1, or for a model that is replayed already.
            NotWritten, ShimUnusable, ChildDied, ChildTimedOut
        """
        every, replayed = _every(shadow), asked_for(model, cuda_graph)
        with self._lock:
            if not _switched_off():
                shim = self._prepare()
                if replayed is not None:
                    self._replays.add(*replayed)
                shim.shadow(self, every)
                if not self._enabled:
                    self._before = self._missed(shim)
                    for entry in self.file.entries:
                        self._install(shim, entry, entry.node_id in without)
                    self._compiled = [e.call for e in self.file.entries if e.key in self._handles]
                    self._compiled_regions = list(self._regions.values())
                    compiling.add(self._compiled, self._compiled_regions)
                    self._enabled = True
                self._enable_regions(shim, model)
                kernels_changed()
        return model

    def disable(self) -> None:
        """Restore eager; what was counted stays."""
        with self._lock:
            if self._enabled and self._shim is not None:
                self._fallbacks += self._missed(self._shim) - self._before
                for key, handle in self._handles.items():
                    self._hits[key] += self._shim.hits(handle)
                    self._compared[key] = self._compared_with_eager(key)
                    self._shim.remove(handle)
                self._handles.clear()
                self._shim.shadow(self, 0)
                compiling.remove(self._compiled, self._compiled_regions)
                regions(self._shim).disable(list(self._regions.values()))
                self._regions.clear()
                self._replays.close()
                self._enabled = False
                kernels_changed()

    def __enter__(self) -> "Cast":
        self.enable()
        return self

    def __exit__(self, *_: object) -> None:
        self.disable()

    def counters(self) -> Counters:
        """Hits by kernel and fallbacks by reason, while it was enabled."""
        with self._lock:
            fallbacks: dict[str, dict[str, int]] = {}
            for (operator, reason), count in self._all_fallbacks().items():
                fallbacks.setdefault(operator, {})[reason] = count
            return Counters(
                enabled=self._enabled,
                dispatch=self._shim.kind if self._shim is not None else None,
                disabled_by=SWITCH if _switched_off() else None,
                torch_exported=self.file.header.torch,
                torch_running=torch.__version__,
                served=tuple(map(self._served, self.file.entries)),
                fallbacks=fallbacks,
                graphs=self._replays.counted(),
            )

    def __repr__(self) -> str:
        active = len(self.file.entries) - len(self._inactive)
        state = "enabled" if self._enabled else "not enabled"
        off = f", switched off by {SWITCH}" if _switched_off() else ""
        return f"<Cast {self.file.path}: {active} of {len(self.file.entries)} usable, {state}{off}>"

    def _prepare(self) -> Shim:
        """Build and load everything once; what cannot run here becomes inactive."""
        if self._shim is None or self._loader is None:
            self._shim = shim_module.load(self._cache)
            self._loader = Loader(self.file, self._shim, self._cache)
            self._loader.build(self.file.entries)
            for entry in self.file.entries:
                self._code(self._loader, entry)
        return self._shim

    def _code(self, loader: Loader, entry: Entry) -> shim_module.LoadedCode | None:
        try:
            code = loader.code(entry)
        except Inactive as inactive:
            self._inactive[entry.key] = str(inactive)
            return None
        self._inactive.pop(entry.key, None)
        return code

    def _install(self, shim: Shim, entry: Entry, left_out: bool) -> None:
        self._regions.pop(entry.key, None)
        code = self._code(self._loader, entry) if self._loader and not left_out else None
        if code is None:
            return
        try:
            if entry.call.region is None:
                self._handles[entry.key] = shim.add(entry.call, entry.resolved, code)
            else:
                self._regions[entry.key] = self._kernel(shim, entry, code)
        except NotInstalled as error:
            self._inactive[entry.key] = f"operator: {error}"

    def _kernel(self, shim: Shim, entry: Entry, code: shim_module.LoadedCode) -> Kernel:
        """The kernel of a region; a new one where its code was loaded for further devices."""
        known = self._kernels.get(entry.key)
        if entry.call.region is not None and (known is None or known.code != code):
            self._hits[entry.key] += known.hits if known is not None else 0
            known = self._kernels[entry.key] = Kernel(
                shim, entry.call, entry.call.region, entry.resolved, code, self._scope
            )
        return self._kernels[entry.key]

    def _enable_regions(self, shim: Shim, model: object) -> None:
        if not self._regions:
            return
        lost = regions(shim).enable(list(self._regions.values()), model)
        for key, kernel in self._regions.items():
            self._inactive.pop(key, None)
            if kernel in lost:
                owner = kernel.region.owner
                self._inactive[key] = f"region: {owner} is not loaded in this process"

    def _missed(self, shim: Shim) -> Counter[tuple[str, str]]:
        ours = {entry.call.name for entry in self.file.entries}
        missed = shim.misses() | regions(shim).misses()
        found = {n: reasons for n, reasons in missed.items() if n in ours}
        return Counter({(n, r): count for n, rs in found.items() for r, count in rs.items()})

    def _all_fallbacks(self) -> Counter[tuple[str, str]]:
        if not self._enabled or self._shim is None:
            return self._fallbacks
        return self._fallbacks + (self._missed(self._shim) - self._before)

    def _served(self, entry: Entry) -> Served:
        hits = self._hits[entry.key]
        if self._shim is not None and entry.key in self._handles:
            hits += self._shim.hits(self._handles[entry.key])
        if entry.key in self._kernels:
            hits += self._kernels[entry.key].hits
        compared, worst = self._compared_with_eager(entry.key)
        return Served(
            node_id=entry.node_id,
            operator=entry.call.name,
            hits=hits,
            inactive=self._inactive.get(entry.key),
            compared=compared,
            worst=worst,
        )

    def _compared_with_eager(self, key: Key) -> tuple[int, float]:
        """How many hits were compared so far, and the largest difference."""
        count, worst = self._compared.get(key, (0, 0.0))
        if self._shim is None or key not in self._handles:
            return count, worst
        more, found = self._shim.compared(self._handles[key])
        return count + more, max(worst, found)


def load(path: Path, *, cache: Path | None = None, trusted: Trusted | None = None) -> Cast:
    """Read a cast and prepare it for this process; see kernelforge_engine.cast.load.

    Raises:
        CastRejected, CastUntrusted, KeyUnusable, SigningMissing, NotWritten, ShimUnusable,
        ChildDied, ChildTimedOut
    """
    return Cast(read(path, trusted), cache or Path.home() / ".cache" / "kernelforge")


def _every(shadow: float) -> int:
    """One in how many hits that share is, 0 for none."""
    if not 0 <= shadow <= 1:
        accepted = "a number from 0 to 1, such as 0.01"
        raise BadOption(field="shadow", value=shadow, why="it is no share", accepted=accepted)
    return round(1 / shadow) if shadow else 0


def _switched_off() -> bool:
    # The switch must work where nothing of ours runs but this module.
    return os.environ.get(SWITCH, "0") not in ("", "0")  # noqa: TID251
