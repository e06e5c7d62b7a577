"""The machine around a comparison: what it says of itself, and how often it got in the way."""

import os
import resource
import time
from contextlib import suppress
from pathlib import Path

import torch

from kernelforge_engine.calls import Json
from kernelforge_engine.worker import nvml
from kernelforge_engine.worker.machine import device_name

SWITCHES = "nonvoluntary_ctxt_switches:"
STOLEN = 8  # the place of that column in /proc/stat
DEEPEST = 8  # generations between this engine and a process of it
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


class Surroundings:
    """The state of a device and its machine from now on; what cannot be read has no entry."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._nvml = _nvml(device)
        self._stolen = stolen_ticks()
        self._start = time.time_ns() // 1000
        self._before = self._state()

    @property
    def throttled(self) -> str:
        """Why the device is slower now than it was asked to be, or empty."""
        return nvml.held_back(self._nvml.throttle_reasons()) if self._nvml else ""

    @property
    def spoilt(self) -> str:
        """Why no close win since then can be believed, or empty."""
        if self.throttled:
            return f"the device held its clocks back: {self.throttled}"
        if others := self._others():
            return f"{len(others)} other processes computed on the device meanwhile"
        return ""

    def core_mhz(self) -> int:
        """The device's clock now, 0 where there is none to ask."""
        return self._nvml.core_mhz() if self._nvml else 0

    def _others(self) -> set[int]:
        """Processes that computed on the device and are none of this engine's. A container may
        number processes in its own way: where this one is not on the list, nobody can be told
        apart."""
        if self._nvml is None or os.getpid() not in self._nvml.processes():
            return set()
        return {pid for pid in self._nvml.computed_since(self._start) if not _is_ours(pid)}

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
        if self._nvml:
            found["processes_on_device"] = len(self._nvml.processes())
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


def _is_ours(pid: int) -> bool:
    """Whether a process was started by this engine, whose child this one is, or has ended since."""
    engine = os.getppid()
    for _ in range(DEEPEST):
        if pid in (engine, os.getpid()):
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])
        except FileNotFoundError:
            return True
        except (OSError, ValueError, IndexError):
            return False
        if pid <= 1:
            break
    return False


def _nvml(device: torch.device) -> nvml.Nvml | None:
    if device.type != "cuda":
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return nvml.opened(f"GPU-{uuid}") if uuid else None
