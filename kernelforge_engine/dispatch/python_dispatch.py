"""The shim without a compiler: what `native/shim.cpp` exports, in Python.

Kernels in Python stand at the same keys of the dispatcher, registered through torch.library. They
decide as the native ones do and launch the same plans, but a call of a hooked operator passes
through the interpreter, which takes microseconds where the native shim takes a tenth of one.
"""

import itertools
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from kernelforge_engine.cast.words import DTYPES
from kernelforge_engine.dispatch.python_calls import (
    Buffer,
    Launch,
    Output,
    Table,
    Variant,
    Words,
    keys_of,
    plain_keys,
    records,
)
from kernelforge_engine.dispatch.python_hits import HOST, HostFunction, devices
from kernelforge_engine.dispatch.python_hooks import AUTOCAST, Counted, Hook, Shadow, marks
from kernelforge_engine.errors import NoDevice
from kernelforge_engine.plans import ResolvedLaunch
from kernelforge_engine.runner.driver import CudaError

P = ParamSpec("P")
R = TypeVar("R")
PROVEN, REFUSED = 1, 2
UNPROVEN = -1 - len(Counted.REASONS)


class SlowDispatch(UserWarning):
    """No C++ compiler was found, so that every call of an operator that a cast has kernels for goes
    through Python: that takes 10 to 40 us, on a hit and on a miss, where the compiled shim takes
    less than one. Next: install g++ (Debian and Ubuntu: apt install g++) and load the cast
    again."""

    def __init__(self) -> None:
        super().__init__(" ".join((self.__doc__ or "").split()))


def guarded(function: Callable[P, R]) -> Callable[P, R | int]:
    """An export that answers 0 where it fails, and leaves why to kf_error."""

    @wraps(function)
    def export(*args: P.args, **kwargs: P.kwargs) -> R | int:
        try:
            return function(*args, **kwargs)
        except (AttributeError, RuntimeError, CudaError, NoDevice) as error:
            _failure.text = str(error)
            return 0

    return export


_failure = threading.local()


class Site(Counted):
    """A place where calls of a region arrive."""

    def __init__(self, cuda: bool) -> None:
        super().__init__()
        self.autocast = AUTOCAST[cuda]
        self.table = Table()

    def serve(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], int]:
        """The outputs and the form in which to return them; or none and why, as a negative."""
        words = Words()
        reason, variant = self._decide(tensors, words)
        if reason:
            return [], -1 - self.miss(reason)
        if variant is None or variant.proof != PROVEN:
            return [], UNPROVEN
        return self.hit(variant, words, "a region").outputs, variant.form

    def _decide(self, tensors: Sequence[Tensor], words: Words) -> tuple[str, Variant | None]:
        if not plain_keys(keys_of(tensors)) or not _excluded(self.autocast):
            return "key_set", None
        if not all(map(words.add_of_region, tensors)):
            return "unsupported_argument", None
        serving = (v for v in self.table.find(words) if v.switch[0] and v.proof != REFUSED)
        variant = next(serving, None)
        if variant is None:
            return "guard", None
        if records(words.tensors):
            return "autograd", None
        return ("", variant) if variant.loaded(words.placed) else ("device", None)


def _excluded(key: torch._C.DispatchKey) -> bool:
    return bool(torch._C._dispatch_tls_is_dispatch_key_excluded(key))


class Interpreted:
    """The exports, by their names there. Handles are numbers; what they stand for is kept for the
    life of the process, since a call may be on its way."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self._sites: list[Site] = []
        marks()

    def serve(self, tensors: Sequence[Tensor], site: int) -> tuple[list[Tensor], int]:
        """What kernelforge::serve of the native shim does."""
        return self._sites[site].serve(tensors)

    def _keep(self, made: Any) -> int:
        number = next(self._numbers)
        self._kept[number] = made
        return number

    def kf_error(self) -> bytes:
        """What failed last in this thread."""
        return str(_failure.text).encode()

    @guarded
    def kf_hook(self, name: bytes, overload: bytes, cuda: bool) -> int:
        """Take the place of an operator's kernel on a kind of device."""
        return self._keep(Hook(name.decode(), overload.decode(), cuda))

    def kf_unhook(self, hook: int) -> None:
        """Restore what was there before."""
        self._kept[hook].release()

    def kf_misses(self, hook: int, reason: int) -> int:
        """Calls that went to eager for one of the reasons."""
        return int(self._kept[hook].misses[reason])

    def kf_variant(self, words: Sequence[int], count: int) -> int:
        """A variant of these guard words."""
        return self._keep(Variant(key=tuple(words)[:count]))

    def kf_input(self, variant: int, size: int, mutated: bool) -> None:
        """One more tensor argument."""
        self._kept[variant].inputs.append((size, mutated))

    def kf_output(
        self,
        variant: int,
        alias: int,
        dtype: int,
        _rank: int,
        sizes: Sequence[int],
        strides: Sequence[int],
    ) -> None:
        """One more returned tensor."""
        output = Output(
            alias=alias, dtype=_DTYPES[dtype], sizes=tuple(sizes), strides=tuple(strides)
        )
        self._kept[variant].outputs.append(output)

    def kf_buffer(self, variant: int, role: int, index: int, size: int, zero: bool) -> None:
        """One more memory block."""
        self._kept[variant].buffers.append(Buffer(role=role, index=index, bytes=size, zero=zero))

    def kf_launch(
        self, variant: int, kernel: bytes, sizes: Sequence[int], shared: int, cooperative: bool
    ) -> None:
        """One more launch; a cluster of zeros is none."""
        gx, gy, gz, bx, by, bz, cx, cy, cz = sizes
        plan = ResolvedLaunch(
            kernel=kernel.decode(),
            args=(),
            grid=(gx, gy, gz),
            block=(bx, by, bz),
            shared=shared,
            cluster=(cx, cy, cz) if cx else None,
            cooperative=cooperative,
        )
        self._kept[variant].launches.append(Launch(plan=plan))

    def kf_argument(self, variant: int, buffer: int, bits: int) -> None:
        """One more argument of the last launch."""
        self._kept[variant].launches[-1].arguments.append((buffer, bits))

    def kf_host_function(self, variant: int, function: int) -> None:
        """The code of the last launch on the host."""
        self._kept[variant].launches[-1].functions[HOST] = HostFunction(function)

    @guarded
    def kf_device_function(self, variant: int, device: int, function: int) -> int:
        """The code of the last launch on a device."""
        launch = self._kept[variant].launches[-1]
        launch.functions[device] = self._kept[function]
        devices().prepare(launch, device)
        return True

    @guarded
    def kf_install(self, hook: int, variant: int) -> int:
        """Serve calls of a hooked operator with a variant."""
        self._kept[hook].install(self._kept[variant])
        return True

    def kf_remove(self, variant: int) -> None:
        """Serve no more calls with a variant."""
        self._kept[variant].live = False

    def kf_hits(self, variant: int) -> int:
        """How many calls a variant has served."""
        return int(self._kept[variant].hits)

    def kf_shadow(self, every: int) -> None:
        """Compare one in so many hits with eager, 0 for none."""
        Shadow.every = every

    def kf_compared(self, variant: int) -> int:
        """How many hits were compared."""
        return int(self._kept[variant].compared)

    def kf_worst(self, variant: int) -> float:
        """The largest difference that was found."""
        return float(self._kept[variant].worst)

    @guarded
    def kf_device_active(self, device: int) -> int:
        """Whether this process already uses a device."""
        return devices().is_active(device)

    @guarded
    def kf_module(self, device: int, image: bytes) -> int:
        """A cubin on a device."""
        return self._keep(devices().module(device, image))

    @guarded
    def kf_function(self, device: int, module: int, symbol: bytes) -> int:
        """A function of a module."""
        return self._keep(devices().function(device, self._kept[module], symbol.decode()))

    def kf_serving(self) -> int:
        """Nothing has to be registered for regions to be served."""
        return True

    def kf_site(self, _name: bytes, cuda: bool) -> int:
        """A new place where calls of a region arrive."""
        self._sites.append(Site(cuda))
        return len(self._sites) - 1

    def kf_site_misses(self, site: int, reason: int) -> int:
        """Calls of a site that went to eager for one of the reasons."""
        return self._sites[site].misses[reason]

    def kf_switch(self) -> int:
        """What turns the variants of one region's kernel on and off together."""
        return self._keep([False])

    def kf_turn(self, switch: int, on: bool) -> None:
        """Turn it."""
        self._kept[switch][0] = on

    def kf_seat(self, site: int, variant: int, form: int, switch: int) -> None:
        """Add a variant to a site."""
        held = self._kept[variant]
        held.form, held.switch = form, self._kept[switch]
        self._sites[site].table.insert(held)

    def kf_prove(self, variant: int, proof: int) -> None:
        """Say whether a variant's program is what its site runs."""
        self._kept[variant].proof = proof


_DTYPES = {code: getattr(torch, name) for name, code in DTYPES.items() if hasattr(torch, name)}
