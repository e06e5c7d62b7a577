"""Device time: work captured once into a CUDA graph, and replayed between two events."""

from collections.abc import Callable
from contextlib import suppress
from ctypes import byref, c_float, c_void_p

from kernelforge_engine.runner.driver import CudaError, Driver

CAPTURE_OF_THIS_THREAD = 1
TIMED_EVENT = 0


class Stopwatch:
    """Captures and times work on one stream."""

    def __init__(self, driver: Driver, stream: c_void_p) -> None:
        self._driver, self._stream = driver, stream
        self._start = driver.handle("cuEventCreate", TIMED_EVENT)
        self._end = driver.handle("cuEventCreate", TIMED_EVENT)

    def captured(self, work: Callable[[], None]) -> c_void_p:
        """What `work` enqueues, as a graph that can be replayed."""
        driver = self._driver
        driver.call("cuStreamBeginCapture_v2", self._stream, CAPTURE_OF_THIS_THREAD)
        graph = c_void_p()
        try:
            work()
        except BaseException:
            with suppress(CudaError):
                driver.call("cuStreamEndCapture", self._stream, byref(graph))
            raise
        driver.call("cuStreamEndCapture", self._stream, byref(graph))
        replayable = driver.handle("cuGraphInstantiateWithFlags", graph, 0)
        driver.call("cuGraphDestroy", graph)
        return replayable

    def microseconds(
        self,
        graph: c_void_p,
        between: c_void_p | None = None,
        before: c_void_p | None = None,
    ) -> float:
        """The duration of one replay; another, untimed one or `before` runs first, then `between`:
        all is enqueued while the device is busy, so that no launch from the host is timed."""
        call = self._driver.call
        call("cuGraphLaunch", before or graph, self._stream)
        if between is not None:
            call("cuGraphLaunch", between, self._stream)
        call("cuEventRecord", self._start, self._stream)
        call("cuGraphLaunch", graph, self._stream)
        call("cuEventRecord", self._end, self._stream)
        call("cuStreamSynchronize", self._stream)
        milliseconds = c_float()
        call("cuEventElapsedTime", byref(milliseconds), self._start, self._end)
        return milliseconds.value * 1000

    def forget(self, graph: c_void_p) -> None:
        """Free a graph."""
        self._driver.call("cuGraphExecDestroy", graph)
