"""A program that a sanitizer watches: a CUDA candidate's kernels on buffers of their own.

Nothing is judged here, and nothing is measured. Each buffer is an allocation of exactly its size,
so that an access next to it is seen; what no input or header fills is left as the driver gave it.
"""

import ctypes
import signal
import sys
from pathlib import Path

from kernelforge_engine import codec
from kernelforge_engine.pool.protocol import Load, Rehearsal, Slot
from kernelforge_engine.runner.cuda import NON_BLOCKING_STREAM, started
from kernelforge_engine.runner.driver import Driver
from kernelforge_engine.runner.executor import Binding
from kernelforge_engine.runner.kernels import Kernels

SECONDS = 300  # it ends even if whoever started it is gone


def main() -> None:
    """Run the Rehearsal in the file that the argument names."""
    signal.alarm(SECONDS)
    order: Rehearsal = codec.loads(Rehearsal, Path(sys.argv[1]).read_bytes())
    driver = started(order.device)
    stream = driver.handle("cuStreamCreate", NON_BLOCKING_STREAM)
    load = Load(artifact=order.artifact, plan=order.plan, slots=(), arena_bytes=0)
    kernels = Kernels(driver, load, stream)
    for files in order.draws:
        slots, allocated = _laid(driver, order, files, stream)
        kernels.enqueue(Binding(order.plan, slots, 0))
        driver.call("cuStreamSynchronize", stream)
        for address in allocated:
            driver.call("cuMemFree_v2", address)


def _laid(
    driver: Driver, order: Rehearsal, files: tuple[str, ...], stream: ctypes.c_void_p
) -> tuple[tuple[Slot, ...], list[int]]:
    """A buffer for each of the plan's, inputs filled: where they are, and what was allocated."""
    slots, allocated = [], []
    for index, buffer in enumerate(order.plan.buffers):
        shift = order.shifts[index]
        address = driver.allocate(max(1, buffer.bytes + shift))
        allocated.append(address)
        slots.append(Slot(offset=address + shift, bytes=buffer.bytes))
        if buffer.role == "input" and buffer.bytes:
            data = Path(files[buffer.index]).read_bytes()
            where = address + shift
            driver.call("cuMemcpyHtoDAsync_v2", where, data, len(data), stream)
            driver.call("cuStreamSynchronize", stream)
    return tuple(slots), allocated


if __name__ == "__main__":
    main()
