"""Whether a device still computes: asked before its first verdict in a process, and after every
candidate that ended badly, since a fault of one process can leave a device useless to the next.

The question is asked on the Judge's own context; that a fresh process still gets a context is seen
by the next Runner, which is started for nothing else.
"""

import torch

from kernelforge_engine.errors import DeviceUnwell
from kernelforge_engine.records import Status, Verdict

ELEMENTS = 1 << 20
SUSPECT = {Status.CRASHED, Status.TIMED_OUT, Status.MEMORY_VIOLATION, Status.LAUNCH_FAILED}


def is_suspect(verdict: Verdict | None) -> bool:
    """Whether a device must show that it is well after this verdict."""
    return verdict is not None and verdict.status in SUSPECT


def check(device: torch.device) -> None:
    """Compute something of which every bit is known.

    Raises:
        DeviceUnwell: the device refuses, or computes something else.
    """
    try:
        counted = torch.arange(ELEMENTS, device=device, dtype=torch.int64)
        wrong = int((counted.flip(0) + counted != ELEMENTS - 1).sum())
        ones = torch.ones(256, 256, device=device)
        wrong += int((ones @ ones != 256).sum())
    except RuntimeError as error:
        first = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise DeviceUnwell(device=str(device), why=first) from error
    if wrong:
        raise DeviceUnwell(device=str(device), why=f"{wrong} elements of a known result are wrong")
