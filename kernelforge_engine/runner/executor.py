"""What the Runner asks of a backend, and how a backend says that it cannot."""

import ctypes
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from kernelforge_engine.plans import ResolvedArgument, ResolvedPlan
from kernelforge_engine.pool.protocol import Failed, Load, PrepareTiming, Slot, Stage


class Unable(Exception):
    """A command that failed in a way this process survives; `spent`: it can do nothing more."""

    def __init__(self, reply: Failed, *, spent: bool = False) -> None:
        super().__init__(reply.error)
        self.reply, self.spent = reply, spent


def unable(*, stage: Stage, error: str, ours: bool = False) -> Unable:
    """An Unable that leaves the process usable."""
    return Unable(Failed(stage=stage, error=error, ours=ours))


def image_of(order: Load) -> bytes:
    """The artifact's file.

    Raises:
        Unable: it cannot be read, which is no fault of the candidate.
    """
    try:
        return Path(order.artifact.path).read_bytes()
    except OSError as error:
        lack = f"the artifact cannot be read: {error.strerror}"
        raise unable(stage="load", error=lack, ours=True) from error


class Executor(Protocol):
    """A loaded candidate, bound to the arena; every method may raise Unable."""

    def run(self) -> None:
        """Execute the plan once on the arena and leave the result in it."""
        ...

    def prepare(self, order: PrepareTiming) -> None:
        """Copy the arena as it is into the buffer sets that samples are to use."""
        ...

    def collect(self, index: int) -> None:
        """Copy one buffer set into the arena."""
        ...

    def sample(self) -> float:
        """Microseconds per call of one timed sample, after an untimed pass."""
        ...


def shuffled(bases: Sequence[int]) -> list[int]:
    """The buffer sets in the order in which calls use them, which no candidate can know: it could
    fetch the inputs of the next call during its own."""
    order = list(bases)
    random.shuffle(order)  # seeded by the system when this process began
    return order


def passes(sets: int, calls: int) -> list[int]:
    """The calls of each pass over the sets: all of them, and what is left in the last one."""
    whole, rest = divmod(calls, sets)
    return [sets] * whole + [rest] * (rest > 0)


Scalar = ctypes.c_uint64 | ctypes.c_int32 | ctypes.c_int64 | ctypes.c_float | ctypes.c_double


class Binding:
    """The arguments of a plan over the buffer set at address `base`, for one launch after another.

    `launches` has, per launch, an array of pointers to its argument values (CUDA's kernelParams);
    `zeroed` the address and size of every buffer that a call clears first. The values live as long
    as this object.
    """

    def __init__(self, plan: ResolvedPlan, slots: tuple[Slot, ...], base: int) -> None:
        self._values: list[list[Scalar]] = []
        self.launches: list[ctypes.Array[ctypes.c_void_p]] = []
        addresses = [base + slot.offset for slot in slots]
        for launch in plan.launches:
            values = [_scalar(argument, addresses) for argument in launch.args]
            pointers = [ctypes.addressof(value) for value in values]
            self._values.append(values)
            self.launches.append((ctypes.c_void_p * len(pointers))(*pointers))
        self.zeroed = [
            (address, slot.bytes)
            for address, slot, buffer in zip(addresses, slots, plan.buffers, strict=True)
            if buffer.zero and slot.bytes
        ]


def _scalar(argument: ResolvedArgument, addresses: list[int]) -> Scalar:
    match argument.kind:
        case "buffer":
            return ctypes.c_uint64(addresses[int(argument.value)])
        case "i32":
            return ctypes.c_int32(int(argument.value))
        case "i64":
            return ctypes.c_int64(int(argument.value))
        case "f32":
            return ctypes.c_float(argument.value)
        case "f64":
            return ctypes.c_double(argument.value)
