"""The machine around a comparison: what it says of itself, and how often it got in the way."""

import os
import resource
from contextlib import suppress
from pathlib import Path

import torch

from kernelforge_engine.calls import Json
from kernelforge_engine.worker import nvml
from kernelforge_engine.worker.machine import device_name

SWITCHES = "nonvoluntary_ctxt_switches:"
STOLEN = 8  # the place of that column in /proc/stat
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


class Surroundings:
    """The state of a device and its machine from now on; what cannot be read has no entry."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._nvml = _nvml(device)
        self._stolen = stolen_ticks()
        self._before = self._state()

    @property
    def throttled(self) -> str:
        """Why the device is slower now than it was asked to be, or empty."""
        return nvml.held_back(self._nvml.throttle_reasons()) if self._nvml else ""

    def record(self) -> dict[str, Json]:
        """The state at the beginning and now, with what does not change."""
        found: dict[str, Json] = {"device": device_name(self._device)}
        if self._device.type == "cuda":
            found["cuda"] = str(torch.version.cuda)
        else:
            found["threads"] = torch.get_num_threads()
            found["stolen_ticks"] = stolen_ticks() - self._stolen
            with suppress(OSError):
                found["governor"] = GOVERNOR.read_text(encoding="ascii").strip()
        driver = self._nvml.driver() if self._nvml else None
        if driver:
            found["driver"] = driver
        return {**found, "before": self._before, "after": self._state()}

    def _state(self) -> dict[str, Json]:
        load = round(os.getloadavg()[0], 2)
        return {"load": load, **(self._nvml.state() if self._nvml else {})}


def disturbances(pid: int) -> tuple[int, int]:
    """How often threads of this process and of that one lost their processor to others since they
    began, and the ticks that the host took from this machine; what is not counted here is 0."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    return own + _switches(pid), stolen_ticks()


def stolen_ticks() -> int:
    """Ticks in which the host ran something else, summed over processors."""
    try:
        with Path("/proc/stat").open(encoding="ascii") as file:
            return int(file.readline().split()[STOLEN])
    except (OSError, ValueError, IndexError):
        return 0


def _switches(pid: int) -> int:
    """Read from outside, since a candidate would be believed otherwise."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/status"):
        with suppress(OSError, ValueError):
            text = task.read_text(encoding="utf-8")
            total += int(text.partition(SWITCHES)[2].split("\n", 1)[0] or 0)
    return total


def _nvml(device: torch.device) -> nvml.Nvml | None:
    if device.type != "cuda":
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return nvml.opened(f"GPU-{uuid}") if uuid else None
