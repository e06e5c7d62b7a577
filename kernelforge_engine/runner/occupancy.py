"""A program that says how a CUDA candidate's launches fit on a device, without running them.

How many blocks fit on a multiprocessor is the driver's own answer. What keeps more of them away
follows from the rules that CUDA's programming guide gives for devices since compute capability 8:
registers are given to a warp in units of 256, out of a quarter of the multiprocessor's; shared
memory to a block in units of 128 bytes, beside what the driver keeps for itself.
"""

import sys
from ctypes import byref, c_int, c_void_p
from math import ceil, prod
from pathlib import Path

from kernelforge_engine import codec
from kernelforge_engine.plans import ResolvedLaunch
from kernelforge_engine.pool.protocol import Inspected, Load, Rehearsal, Residency
from kernelforge_engine.runner.cuda import NON_BLOCKING_STREAM, started
from kernelforge_engine.runner.driver import Driver
from kernelforge_engine.runner.kernels import Kernels, configuration

# CUfunction_attribute
STATIC_SHARED, LOCAL, REGISTERS = 1, 3, 4
# CUdevice_attribute
WARP, MULTIPROCESSORS, MOST_THREADS, MOST_SHARED, MOST_REGISTERS, MOST_BLOCKS, KEPT_SHARED = (
    10, 16, 39, 81, 82, 106, 111,
)  # fmt: skip
REGISTER_UNIT, SHARED_UNIT, QUARTERS = 256, 128, 4


class Device:
    """What a multiprocessor of a device has, and how launches share it out."""

    def __init__(self, driver: Driver, number: int, stream: c_void_p) -> None:
        self._driver, self._stream, self._handle = driver, stream, c_int()
        driver.call("cuDeviceGet", byref(self._handle), number)
        self._warp = self._has(WARP)
        self._multiprocessors = self._has(MULTIPROCESSORS)

    def residency(self, function: c_void_p, launch: ResolvedLaunch) -> Residency:
        """What one launch takes, and how much of it fits."""
        warps = ceil(prod(launch.block) / self._warp)
        registers = self._of(function, REGISTERS)
        static = self._of(function, STATIC_SHARED)
        blocks = self._blocks(function, launch)
        return Residency(
            registers=registers,
            static_shared_bytes=static,
            local_bytes=self._of(function, LOCAL),
            blocks_per_multiprocessor=blocks,
            resident_blocks=self._resident(function, launch, blocks),
            multiprocessors=self._multiprocessors,
            warps_per_block=warps,
            most_warps=self._has(MOST_THREADS) // self._warp,
            limits=self._limits(warps, registers, static + launch.shared),
        )

    def _blocks(self, function: c_void_p, launch: ResolvedLaunch) -> int:
        count = c_int()
        self._driver.call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            byref(count), function, prod(launch.block), launch.shared,
        )  # fmt: skip
        return count.value

    def _resident(self, function: c_void_p, launch: ResolvedLaunch, blocks: int) -> int:
        """Blocks on the whole device; those of a cluster only fit together."""
        if launch.cluster is None:
            return blocks * self._multiprocessors
        count, config = c_int(), configuration(launch, self._stream)
        self._driver.call("cuOccupancyMaxActiveClusters", byref(count), function, byref(config))
        return count.value * prod(launch.cluster)

    def _limits(self, warps: int, registers: int, shared: int) -> dict[str, int]:
        """How many blocks each resource has room for."""
        each = max(1, ceil(registers * self._warp / REGISTER_UNIT)) * REGISTER_UNIT
        held = ceil((shared + self._has(KEPT_SHARED)) / SHARED_UNIT) * SHARED_UNIT
        return {
            "registers": self._has(MOST_REGISTERS) // QUARTERS // each * QUARTERS // warps,
            "shared_memory": self._has(MOST_SHARED) // max(1, held),
            "warps": self._has(MOST_THREADS) // self._warp // warps,
            "blocks": self._has(MOST_BLOCKS),
        }

    def _of(self, function: c_void_p, attribute: int) -> int:
        value = c_int()
        self._driver.call("cuFuncGetAttribute", byref(value), attribute, function)
        return value.value

    def _has(self, attribute: int) -> int:
        value = c_int()
        self._driver.call("cuDeviceGetAttribute", byref(value), attribute, self._handle)
        return value.value


def main() -> None:
    """Inspect the Rehearsal in the file that the first argument names; the second is where the
    answer goes."""
    order: Rehearsal = codec.loads(Rehearsal, Path(sys.argv[1]).read_bytes())
    driver = started(order.device)
    stream = driver.handle("cuStreamCreate", NON_BLOCKING_STREAM)
    load = Load(artifact=order.artifact, plan=order.plan, slots=(), arena_bytes=0)
    functions = Kernels(driver, load, stream).functions
    device = Device(driver, order.device, stream)
    pairs = zip(functions, order.plan.launches, strict=True)
    found = Inspected(launches=tuple(device.residency(f, launch) for f, launch in pairs))
    Path(sys.argv[2]).write_text(codec.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
