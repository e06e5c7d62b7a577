"""The door to the C++ shim: install variants, take them out again, and read what was counted."""

import ctypes
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from ctypes import c_int64, c_uint, c_uint64, c_void_p
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from kernelforge_engine.calls import Backend, Call, OutputSpec
from kernelforge_engine.cast.words import DTYPES, call_words, float_bits
from kernelforge_engine.dispatch import build, exports
from kernelforge_engine.dispatch.encode import overload_of
from kernelforge_engine.dispatch.probe import NoHit, probe
from kernelforge_engine.dispatch.python_dispatch import Interpreted, SlowDispatch
from kernelforge_engine.errors import NoCompiler, NotInstalled, ShimUnusable
from kernelforge_engine.plans import ResolvedArgument, ResolvedLaunch, ResolvedPlan

# In the order of `Reason` in native/hook.h.
REASONS = ("key_set", "unsupported_argument", "guard", "autograd", "overlap", "device")
UNPROVEN, PROVEN, REFUSED = PROOFS = range(3)  # in the order of `Proof` in native/plan.h
ROLES = {"input": 0, "output": 1, "workspace": 2}


@dataclass(frozen=True, kw_only=True)
class LoadedCode:
    """The functions of one artifact, by kernel name on CUDA and by launch index ("0", "1", ...) on
    the cpu backend: device index -> address. The cpu backend has one device, 0."""

    functions: Mapping[str, Mapping[int, int]]


Key = tuple[str, str, Backend]
Served = tuple[list[Tensor], int]


@dataclass(frozen=True)
class Handle:
    """An installed variant."""

    hook: Key = field(repr=False)
    variant: int


class Shim:
    """The variants this process has installed; every method may be called from any thread."""

    def __init__(self, native: Any, serve: Callable[[list[Tensor], int], Served]) -> None:
        self.serve = serve  # a call of a region: its tensors, and the number of its site
        self._lock = threading.RLock()
        self._hooks: dict[Key, int] = {}
        self._live: dict[Key, set[Handle]] = defaultdict(set)
        self._past: dict[str, dict[str, int]] = {}
        self._shadows: dict[int, int] = {}
        self._native = native

    @property
    def kind(self) -> Literal["native", "python"]:
        """Whether calls are served by the compiled shim or, slower, by the one in Python."""
        return "python" if isinstance(self._native, Interpreted) else "native"

    def host_code(self, path: str, symbols: Mapping[str, str]) -> LoadedCode:
        """The functions of a built cpu candidate; it stays loaded for the life of the process.

        Raises:
            NotInstalled: the file cannot be loaded or lacks a symbol.
        """
        try:
            loaded = ctypes.CDLL(path)
            found = {k: {0: _address(loaded, symbol)} for k, symbol in symbols.items()}
        except (OSError, AttributeError) as error:
            raise NotInstalled(what=path, why=str(error)) from error
        return LoadedCode(functions=found)

    def device_code(
        self, image: bytes, symbols: Mapping[str, str], devices: Iterable[int]
    ) -> LoadedCode:
        """The functions of a cubin on each of `devices`; never call this in a graph capture.

        Raises:
            NotInstalled: the driver refuses the image or has no such symbol.
        """
        found: dict[str, dict[int, int]] = {kernel: {} for kernel in symbols}
        for device in devices:
            module = self._checked("a cubin", self._native.kf_module(device, image))
            for kernel, symbol in symbols.items():
                function = self._native.kf_function(device, module, symbol.encode())
                found[kernel][device] = self._checked(symbol, function)
        return LoadedCode(functions=found)

    def active_devices(self) -> tuple[int, ...]:
        """The CUDA devices this process uses: the current one and those with an open context."""
        current = torch.cuda.current_device()
        return tuple(
            device
            for device in range(torch.cuda.device_count())
            if device == current or self._native.kf_device_active(device)
        )

    def add(self, call: Call, resolved: ResolvedPlan, code: LoadedCode | None = None) -> Handle:
        """Run `resolved` instead of eager for every call with the guard words of `call`.

        A plan without launches needs no code: its outputs are allocated and nothing else, which is
        what a hit costs by itself. The newest variant of a call stands before older ones.

        Raises:
            NotInstalled: the operator is not registered here, its guard words are not those of its
                arguments, or a function is missing or refused.
        """
        if call_words(call) != call.words:
            raise NotInstalled(what=call.name, why="its guard words do not fit its arguments")
        key = (call.operator, call.overload, call.backend)
        with self._lock:
            hook = self._hooked(key)
            try:
                variant = self._variant(call, resolved, code)
                self._checked(call.name, self._native.kf_install(hook, variant))
            except NotInstalled:
                self._release(key)
                raise
            handle = Handle(hook=key, variant=variant)
            self._live[key].add(handle)
        return handle

    def remove(self, handle: Handle) -> None:
        """Take one variant out; its operator is restored with the last of them."""
        with self._lock:
            self._native.kf_remove(handle.variant)
            self._live[handle.hook].discard(handle)
            self._release(handle.hook)

    def remove_all(self) -> None:
        """Take every variant out and restore every operator."""
        with self._lock:
            for handle in [h for handles in self._live.values() for h in handles]:
                self.remove(handle)

    def hits(self, handle: Handle) -> int:
        """How many calls a variant has served."""
        count: int = self._native.kf_hits(handle.variant)
        return count

    def shadow(self, asker: object, every: int) -> None:
        """Run one in `every` hits of an operator by eager too, and compare, until `asker` says 0;
        of several who ask, the one counts who wants the most."""
        with self._lock:
            self._shadows[id(asker)] = every
            self._shadows = {who: n for who, n in self._shadows.items() if n}
            self._native.kf_shadow(min(self._shadows.values(), default=0))

    def compared(self, handle: Handle) -> tuple[int, float]:
        """How many calls of a variant were compared with eager, and the largest difference over the
        root mean square of eager's answer."""
        return self._native.kf_compared(handle.variant), self._native.kf_worst(handle.variant)

    def misses(self) -> dict[str, dict[str, int]]:
        """Calls of hooked operators that went to eager, by operator and reason, since the load."""
        with self._lock:
            found = {name: dict(reasons) for name, reasons in self._past.items()}
            for key, hook in self._hooks.items():
                self._count(_name(key), hook, found)
        return found

    def _count(self, name: str, hook: int, into: dict[str, dict[str, int]]) -> None:
        for position, reason in enumerate(REASONS):
            if count := self._native.kf_misses(hook, position):
                reasons = into.setdefault(name, {})
                reasons[reason] = reasons.get(reason, 0) + count

    def _hooked(self, key: Key) -> int:
        if key not in self._hooks:
            operator, overload, backend = key
            hook = self._native.kf_hook(operator.encode(), overload.encode(), backend == "cuda")
            self._hooks[key] = self._checked(_name(key), hook)
            _forget_traced(operator, overload)
        return self._hooks[key]

    def _release(self, key: Key) -> None:
        if not self._live[key] and key in self._hooks:
            hook = self._hooks.pop(key)
            self._native.kf_unhook(hook)
            _forget_traced(key[0], key[1])
            self._count(_name(key), hook, self._past)

    def site(self, name: str, backend: Backend) -> int:
        """The number of a new place where calls of a region arrive; `name` is said in errors.

        Raises:
            NotInstalled: there are too many.
        """
        with self._lock:
            self._checked(name, self._native.kf_serving())
            number: int = self._native.kf_site(name.encode(), backend == "cuda")
            if number < 0:
                raise NotInstalled(what=name, why=self._native.kf_error().decode())
        return number

    def switch(self) -> int:
        """What turns the variants of one region's kernel on and off together; off at first."""
        made: int = self._native.kf_switch()
        return made

    def turn(self, switch: int, *, on: bool) -> None:
        """Turn a region's kernel on or off."""
        self._native.kf_turn(switch, on)

    def seat(
        self,
        site: int,
        switch: int,
        form: int,
        call: Call,
        resolved: ResolvedPlan,
        code: LoadedCode | None,
    ) -> int:
        """A new variant of a site: it serves calls whose tensors have the words of `call`, once it
        is proven, and answers them with `form`.

        Raises:
            NotInstalled: a function is missing or refused.
        """
        with self._lock:
            variant = self._variant(call, resolved, code)
            self._native.kf_seat(site, variant, form, switch)
        return variant

    def prove(self, variant: int, proof: int) -> None:
        """Say whether a variant's program is what its site runs: one of the PROOFS."""
        self._native.kf_prove(variant, proof)

    def variant_hits(self, variant: int) -> int:
        """How many calls one variant of a site has served."""
        count: int = self._native.kf_hits(variant)
        return count

    def site_misses(self, site: int) -> dict[str, int]:
        """Calls of a site that went to eager, by reason."""
        counts = {r: self._native.kf_site_misses(site, i) for i, r in enumerate(REASONS)}
        return {reason: count for reason, count in counts.items() if count}

    def _variant(self, call: Call, resolved: ResolvedPlan, code: LoadedCode | None) -> int:
        native = self._native
        variant: int = native.kf_variant(_array(c_uint64, call.words), len(call.words))
        for index, spec in enumerate(call.inputs):
            native.kf_input(variant, spec.extent_bytes, index in call.mutated)
        for output in call.outputs:
            self._output(variant, output)
        for buffer in resolved.buffers:
            role = ROLES[buffer.role]
            native.kf_buffer(variant, role, buffer.index, buffer.bytes, buffer.zero)
        for position, launch in enumerate(resolved.launches):
            key = launch.kernel if call.backend == "cuda" else str(position)
            self._launch(variant, launch)
            self._functions(variant, call.backend, key, code)
        return variant

    def _output(self, variant: int, output: OutputSpec) -> None:
        spec = output.tensor
        self._native.kf_output(
            variant,
            -1 if output.alias is None else output.alias,
            DTYPES[spec.dtype],
            len(spec.shape),
            _array(c_int64, spec.shape),
            _array(c_int64, spec.stride),
        )

    def _launch(self, variant: int, launch: ResolvedLaunch) -> None:
        sizes = (*launch.grid, *launch.block, *(launch.cluster or (0, 0, 0)))
        name = launch.kernel.encode()
        dimensions = _array(c_uint, sizes)
        self._native.kf_launch(variant, name, dimensions, launch.shared, launch.cooperative)
        for argument in launch.args:
            self._native.kf_argument(variant, *_bits(argument))

    def _functions(self, variant: int, backend: Backend, key: str, code: LoadedCode | None) -> None:
        functions = code.functions.get(key) if code else None
        if not functions:
            raise NotInstalled(what=key, why="its code was not loaded")
        if backend == "cpu":
            self._native.kf_host_function(variant, functions[0])
            return
        for device, function in functions.items():
            self._checked(key, self._native.kf_device_function(variant, device, function))

    def _checked(self, what: str, result: int | None) -> int:
        if not result:
            raise NotInstalled(what=what, why=self._native.kf_error().decode(errors="replace"))
        return result


def _address(library: ctypes.CDLL, symbol: str) -> int:
    return ctypes.cast(getattr(library, symbol), c_void_p).value or 0


def _forget_traced(operator: str, overload: str) -> None:
    """Let torch ask anew which kernels an operator has where it traces.

    Its tracer (`torch._C._EnablePythonDispatcher`) keeps the answer for ever: told of a hook that
    is gone since, it would record a composite operator without its derivative.
    """
    overload_of(operator, overload)._dispatch_cache.clear()


def _name(key: Key) -> str:
    return f"{key[0]}.{key[1]}" if key[1] else key[0]


def _array(
    kind: type["ctypes._SimpleCData[int]"], values: tuple[int, ...]
) -> "ctypes.Array[ctypes._SimpleCData[int]]":
    return (kind * len(values))(*values)


def _bits(argument: ResolvedArgument) -> tuple[int, int]:
    """The buffer of an argument or -1, and its value as the eight bytes a parameter points to."""
    match argument.kind:
        case "buffer":
            return int(argument.value), 0
        case "f64":
            return -1, float_bits(float(argument.value))
        case "f32":
            return -1, int.from_bytes(bytes(ctypes.c_float(argument.value)), "little")
        case _:
            return -1, int(argument.value) & 0xFFFF_FFFF_FFFF_FFFF


_process_lock = threading.Lock()
_process_shim: list[Shim] = []


def load(folder: Path) -> Shim:
    """The shim of this process; the first call builds it into `folder` if needed and tries it out.

    Where it has to be built and there is no C++ compiler it is the one in Python, with a warning.

    Raises:
        ShimUnusable: it cannot be built, cannot be loaded, or does not hit.
    """
    with _process_lock:
        if not _process_shim:
            _process_shim.append(_tried(folder))
        return _process_shim[0]


def _tried(folder: Path) -> Shim:
    path = folder
    try:
        path = build.library(folder)
        shim = compiled(path)
    except NoCompiler:
        warnings.warn(SlowDispatch(), stacklevel=2)
        shim = interpreted()
    except OSError as error:
        raise ShimUnusable(torch=torch.__version__, why=str(error), path=path) from error
    try:
        probe(shim)
    except (NotInstalled, NoHit) as error:
        raise ShimUnusable(torch=torch.__version__, why=str(error), path=path) from error
    shim._past.clear()
    return shim


def compiled(path: Path) -> Shim:
    """A shim of its binary.

    Raises:
        OSError: it cannot be loaded.
    """
    return Shim(exports.open_library(path), _serve)


def interpreted() -> Shim:
    """A shim in Python."""
    native = Interpreted()
    return Shim(native, native.serve)


def _serve(tensors: list[Tensor], site: int) -> Served:
    answer: Served = torch.ops.kernelforge.serve.default._op(tensors, site)
    return answer
