"""The CUDA backend: a cubin launched through the driver, on the arena in device memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import byref, c_int, c_void_p
from functools import cache, partial
from typing import Literal

from kernelforge_engine.errors import NoDevice
from kernelforge_engine.pool.protocol import Failed, Load, PrepareTiming, Slot
from kernelforge_engine.runner.driver import FAULTS, STICKY, CudaError, Driver
from kernelforge_engine.runner.executor import Binding, Unable, passes, shuffled, unable
from kernelforge_engine.runner.graphs import Stopwatch
from kernelforge_engine.runner.kernels import Kernels
from kernelforge_engine.sandbox import libc
from kernelforge_engine.sandbox.limits import Limits
from kernelforge_engine.sandbox.lock import Policy, enter

NON_BLOCKING_STREAM = 1
PERSISTING_L2_LIMIT = 6
WARM_UP_BYTES = 4
WORDS_BYTES = 1 << 20  # what it may write: to its standard output and error, nothing else is open
# Read by the driver when it starts: kernels are loaded at once, and nothing is cached on disk.
VARIABLES = {"CUDA_MODULE_LOADING": "EAGER", "CUDA_CACHE_DISABLE": "1"}


class Cuda:
    """A device context of this process with the arena's memory in it."""

    def __init__(self, order: Load, arena: int) -> None:
        self._order, self._arena = order, arena
        self._driver = driver = started(order.device)
        self._stream = driver.handle("cuStreamCreate", NON_BLOCKING_STREAM)
        self._stopwatch = Stopwatch(driver, self._stream)
        self._memory = (
            driver.opened(order.shared) if order.shared else driver.allocate(order.arena_bytes)
        )
        self._copies: list[int] = []
        self._graph: c_void_p | None = None
        self._restoring: c_void_p | None = None
        self._busy: c_void_p | None = None
        self._filled: list[int] = []
        self._passes = [1]
        with suppress(CudaError):  # a device without this cache has no such limit
            driver.call("cuCtxSetLimit", PERSISTING_L2_LIMIT, 0)

    def warm_up(self) -> None:
        """Use each part of the driver once, while it may still open files and start threads."""
        self._upload()
        self._download()
        size = min(WARM_UP_BYTES, self._order.arena_bytes)
        graph = self._stopwatch.captured(
            lambda: self._driver.call("cuMemsetD8Async", self._memory, 0, size, self._stream)
        )
        self._stopwatch.microseconds(graph)
        self._stopwatch.forget(graph)

    def load(self) -> None:
        """Load the candidate's module."""
        self._kernels = Kernels(self._driver, self._order, self._stream)
        self._binding = self._bound(self._memory)

    def run(self) -> None:
        """Execute the plan once: copy in, launch, copy out."""
        with reported("launch"):
            self._upload()
            self._kernels.enqueue(self._binding)
            self._download()

    def prepare(self, order: PrepareTiming) -> None:
        """Copy the arena into device buffer sets, and record the calls of a pass as one graph.

        The last copy is no set: what is restored comes from it. Unless the calls are a multiple of
        the sets, one graph holds them all.
        """
        with reported("launch", ours=True):
            self._forget()
            self._upload()
            for _ in range(order.sets + 1):
                self._copies.append(self._copied())
        own, origin = shuffled(self._copies[:-1]), self._copies[-1]
        each = passes(order.sets, order.calls)
        self._passes = each if len(set(each)) == 1 else [order.calls]
        bindings = [self._bound(copy) for copy in own]
        slots = [s for i, s in enumerate(self._order.slots) if i in order.restored and s.bytes]
        laid_anew = partial(self._copy_each, slots, origin, own)

        def calls_in_turn() -> None:
            for call in range(self._passes[0]):
                self._kernels.enqueue(bindings[call % order.sets])

        with reported("launch"):
            self._graph = self._stopwatch.captured(calls_in_turn)
        with reported("launch", ours=True):
            if slots:
                self._restoring = self._stopwatch.captured(laid_anew)
            if order.busy_bytes:
                self._busy = self._filling(order.busy_bytes)

    def collect(self, index: int) -> None:
        """Copy one buffer set into the arena."""
        size = self._order.arena_bytes
        with reported("launch", ours=True):
            self._driver.call(
                "cuMemcpyDtoDAsync_v2", self._memory, self._copies[index], size, self._stream
            )
            self._download()

    def sample(self) -> float:
        """Microseconds per call of the replays of a sample, each after one that is not timed."""
        with reported("launch"):
            if self._graph is None:
                raise unable(stage="launch", error="no timing was prepared", ours=True)
            with suppress(CudaError):  # lines a kernel asked to keep must not help the next sample
                self._driver.call("cuCtxResetPersistingL2Cache")
            taken = [
                self._stopwatch.microseconds(self._graph, self._restoring, self._busy)
                for _ in self._passes
            ]
            return sum(taken) / sum(self._passes)

    def _bound(self, base: int) -> Binding:
        return Binding(self._order.plan, self._order.slots, base)

    # Copies go through the stream: the plain ones may return before the bytes have arrived, and a
    # stream that does not block takes no notice of them.
    def _upload(self) -> None:
        if self._order.shared:
            return
        size = self._order.arena_bytes
        self._driver.call("cuMemcpyHtoDAsync_v2", self._memory, self._arena, size, self._stream)

    def _download(self) -> None:
        if not self._order.shared:
            size = self._order.arena_bytes
            self._driver.call("cuMemcpyDtoHAsync_v2", self._arena, self._memory, size, self._stream)
        self._driver.call("cuStreamSynchronize", self._stream)

    def _copy_each(self, slots: Sequence[Slot], origin: int, copies: Sequence[int]) -> None:
        for base in copies:
            for slot in slots:
                there, here = base + slot.offset, origin + slot.offset
                self._driver.call("cuMemcpyDtoDAsync_v2", there, here, slot.bytes, self._stream)

    def _copied(self) -> int:
        size = self._order.arena_bytes
        copy = self._driver.allocate(size)
        self._driver.call("cuMemcpyDtoDAsync_v2", copy, self._memory, size, self._stream)
        return copy

    def _filling(self, size: int) -> c_void_p:
        memory = self._driver.allocate(size)
        self._filled.append(memory)
        return self._stopwatch.captured(
            lambda: self._driver.call("cuMemsetD8Async", memory, 0, size, self._stream)
        )

    def _forget(self) -> None:
        for graph in (self._graph, self._restoring, self._busy):
            if graph is not None:
                self._stopwatch.forget(graph)
        self._graph = self._restoring = self._busy = None
        for memory in (*self._copies, *self._filled):
            self._driver.call("cuMemFree_v2", memory)
        self._copies, self._filled = [], []


@cache
def started(device: int) -> Driver:
    """The driver, with a context of a device current in this thread."""
    for name, value in VARIABLES.items():
        libc.set_variable(name, value)
    driver, handle = Driver(), c_int()
    driver.call("cuInit", 0)
    driver.call("cuDeviceGet", byref(handle), device)
    driver.call("cuCtxSetCurrent", driver.handle("cuDevicePrimaryCtxRetain", handle))
    return driver


def begin(device: int) -> None:
    """Start a device before there is a candidate: it is most of what loading one takes."""
    with reported("load", ours=True):
        started(device)


def load(order: Load, arena: int) -> tuple[Cuda, str]:
    """Start the device, load the candidate, and lock this process.

    Returns:
        The candidate, and the isolation reached.
    """
    with reported("load", ours=True):
        cuda = Cuda(order, arena)
        cuda.warm_up()
    with reported("load"):
        cuda.load()
    # The driver's threads exist already, so there is no way into a namespace of its own; a kernel
    # is device code, which has no system calls.
    policy = Policy(network=False, limits=Limits(file_bytes=WORDS_BYTES))
    return cuda, enter(policy)


@contextmanager
def reported(stage: Literal["load", "launch"], *, ours: bool = False) -> Iterator[None]:
    """Turn a driver's error into the reply that names it."""
    try:
        yield
    except NoDevice as missing:
        raise unable(stage=stage, error=str(missing), ours=True) from missing
    except CudaError as error:
        reply = Failed(stage=stage, error=str(error), fault=error.code in FAULTS, ours=ours)
        raise Unable(reply, spent=error.code in STICKY) from error
