"""What a variant does on a hit, in Python: allocate, and launch on the host or by the driver."""

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from ctypes import byref, c_int, c_uint, c_void_p
from functools import cache
from typing import Any

import torch
from torch import Tensor

from kernelforge_engine.dispatch.python_calls import Launch, Variant
from kernelforge_engine.runner.driver import CudaError, Driver
from kernelforge_engine.runner.kernels import (
    DYNAMIC_SHARED,
    NON_PORTABLE_CLUSTER,
    PORTABLE_CLUSTER_BLOCKS,
    configuration,
)

INPUT, OUTPUT, WORKSPACE = range(3)
HOST = -1
STATIC_SHARED = 1  # CUfunction_attribute
HostFunction = ctypes.CFUNCTYPE(None, c_void_p)


class Devices:
    """The driver with the contexts that torch uses; made when a CUDA kernel is first loaded."""

    def __init__(self) -> None:
        self.driver = Driver()
        self.driver.call("cuInit", 0)
        self._contexts: dict[int, c_void_p] = {}
        self._lock = threading.Lock()

    def context(self, device: int) -> c_void_p:
        """The primary context of a device, retained for the whole process."""
        with self._lock:
            if device not in self._contexts:
                ordinal = self._ordinal(device)
                retained = self.driver.handle("cuDevicePrimaryCtxRetain", ordinal)
                self._contexts[device] = retained
            return self._contexts[device]

    def is_active(self, device: int) -> bool:
        """Whether this process already uses a device."""
        flags, active = c_uint(), c_int()
        state = byref(flags), byref(active)
        self.driver.call("cuDevicePrimaryCtxGetState", self._ordinal(device), *state)
        return bool(active.value)

    @contextmanager
    def current(self, device: int) -> Any:
        """A device's context current in this thread, which may have none yet."""
        context = self.context(device)
        if self.driver.handle("cuCtxGetCurrent").value == context.value:
            yield
            return
        self.driver.call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            self.driver.handle("cuCtxPopCurrent_v2")

    def module(self, device: int, image: bytes) -> c_void_p:
        """A cubin, loaded."""
        with self.current(device):
            return self.driver.handle("cuModuleLoadData", image)

    def function(self, device: int, module: c_void_p, symbol: str) -> c_void_p:
        """A function of a module, loaded at once: later there may be a graph being captured."""
        with self.current(device):
            found = self.driver.handle("cuModuleGetFunction", module, symbol.encode())
            if self.driver.has("cuFuncLoad"):
                self.driver.call("cuFuncLoad", found)
            self._attribute(found, STATIC_SHARED)
            return found

    def prepare(self, launch: Launch, device: int) -> None:
        """Let a function have what a launch asks for; several share it, so that its limits are only
        ever raised."""
        with self.current(device):
            if launch.plan.shared:
                self._raise(launch.functions[device], DYNAMIC_SHARED, launch.plan.shared)
            x, y, z = launch.plan.cluster or (1, 1, 1)
            if x * y * z > PORTABLE_CLUSTER_BLOCKS:
                self._raise(launch.functions[device], NON_PORTABLE_CLUSTER, 1)

    def is_capturing(self, device: int) -> bool:
        """Whether the current stream of a device is being recorded into a graph."""
        status = c_int()
        self.driver.call("cuStreamIsCapturing", _stream(device), byref(status))
        return status.value != 0

    def _ordinal(self, device: int) -> c_int:
        ordinal = c_int()
        self.driver.call("cuDeviceGet", byref(ordinal), device)
        return ordinal

    def _attribute(self, function: c_void_p, attribute: int) -> int:
        value = c_int()
        self.driver.call("cuFuncGetAttribute", byref(value), attribute, function)
        return value.value

    def _raise(self, function: c_void_p, attribute: int, value: int) -> None:
        if self._attribute(function, attribute) < value:
            self.driver.call("cuFuncSetAttribute", function, attribute, value)


@cache
def devices() -> Devices:
    """The devices of this process.

    Raises:
        NoDevice, CudaError: there is no driver, or it does not start.
    """
    return Devices()


def _stream(device: int) -> c_void_p:
    return c_void_p(torch.cuda.current_stream(device).cuda_stream)


class Failed(Exception):
    """A launch that the driver refused; the text says which and why."""


class Hit:
    """One hit: its tensors and their addresses."""

    def __init__(
        self, variant: Variant, tensors: Sequence[Tensor], cuda: torch.device | None
    ) -> None:
        self._variant, self._tensors = variant, tensors
        self._cuda = cuda.index if cuda is not None else None
        place = cuda if cuda is not None else torch.device("cpu")
        # A mode that chooses where tensors are made must not choose here.
        with unseen():
            self.outputs = [
                tensors[o.alias]
                if o.alias >= 0
                else torch.empty_strided(o.sizes, o.strides, dtype=o.dtype, device=place)
                for o in variant.outputs
            ]
            self._workspaces = [
                torch.empty(b.bytes, dtype=torch.uint8, device=place)
                for b in variant.buffers
                if b.role == WORKSPACE
            ]
        held = {INPUT: tensors, OUTPUT: self.outputs}
        spare = iter(self._workspaces)
        self._addresses = [
            (next(spare) if b.role == WORKSPACE else held[b.role][b.index]).data_ptr()
            for b in variant.buffers
        ]

    def launch(self) -> None:
        """Run the launches.

        Raises:
            Failed: the driver refused one.
        """
        if self._cuda is None:
            self._clear(lambda address, size: ctypes.memset(address, 0, size))
            for launch in self._variant.launches:
                values, pointers = self._parameters(launch)
                launch.functions[HOST](ctypes.addressof(pointers))
                del values
        elif self._variant.launches:
            self._launch_on_device(self._cuda)

    @property
    def is_recorded(self) -> bool:
        """Whether the call goes into a graph, where nothing may wait for it."""
        return self._cuda is not None and devices().is_capturing(self._cuda)

    def bump_versions(self) -> None:
        """Count the writes of an operator that has nothing of torch's own to do it."""
        for (_, mutated), tensor in zip(self._variant.inputs, self._tensors, strict=True):
            if mutated and not tensor.is_inference():
                torch.autograd.graph.increment_version(tensor)

    def returned(self, returns: int) -> Any:
        """The outputs as the operator returns them."""
        place, outputs = self._variant.list_return, self.outputs
        if place < 0:
            return outputs[0] if returns == 1 else tuple(outputs)
        end = place + len(outputs) + 1 - returns
        found = (*outputs[:place], outputs[place:end], *outputs[end:])
        return found[0] if returns == 1 else found

    def _launch_on_device(self, device: int) -> None:
        found, stream = devices(), _stream(device)
        driver = found.driver
        try:
            with found.current(device):
                self._clear(lambda at, size: driver.call("cuMemsetD8Async", at, 0, size, stream))
                for launch in self._variant.launches:
                    values, pointers = self._parameters(launch)
                    config = configuration(launch.plan, stream)
                    function = launch.functions[device]
                    driver.call("cuLaunchKernelEx", byref(config), function, pointers, None)
                    del values
        except CudaError as error:
            raise Failed(str(error)) from error

    def _clear(self, clear: Callable[[int, int], object]) -> None:
        for buffer, address in zip(self._variant.buffers, self._addresses, strict=True):
            if buffer.zero and buffer.bytes:
                clear(address, buffer.bytes)

    def _parameters(self, launch: Launch) -> tuple[Any, Any]:
        """The values of a launch, of which a 32-bit number takes the first four bytes, and pointers
        to them."""
        count = len(launch.arguments)
        values = (ctypes.c_uint64 * count)(
            *(self._addresses[at] if at >= 0 else bits for at, bits in launch.arguments)
        )
        base = ctypes.addressof(values)
        return values, (c_void_p * count)(*(base + 8 * i for i in range(count)))


def unseen() -> Any:
    """Function modes of the user's out of the way, which is not free."""
    if torch._C._is_torch_function_mode_enabled():
        return torch._C.DisableTorchFunction()
    return nullcontext()


def difference(ours: Sequence[Tensor], eager: Sequence[Tensor]) -> float:
    """The largest difference over the root mean square of eager's answer; values that are equal,
    NaN included, do not differ."""
    return max(map(_apart, ours, eager), default=0.0)


def _apart(ours: Tensor, eager: Tensor) -> float:
    if not eager.numel():
        return 0.0
    a, b = ours.double(), eager.double()
    same = (a == b) | (a.isnan() & b.isnan())
    largest = float(torch.where(same, 0.0, a - b).abs().max())
    if largest == 0 or not largest < float("inf"):
        return 0.0 if largest == 0 else float("inf")
    finite = torch.where(b.isfinite(), b, 0.0)
    scale = float(finite.square().mean().sqrt())
    return largest / max(scale, torch.finfo(torch.float32).tiny)
