"""The state of an NVIDIA device through its management library, where that is installed."""

import ctypes
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, c_uint, c_ulonglong, c_void_p
from functools import cache
from typing import Any, ClassVar

from kernelforge_engine.calls import Json

LIBRARY = "libnvidia-ml.so.1"
CORE, MEMORY = 1, 2
TEXT = 96
OK = 0
MOST_PROCESSES = 256
# Reasons for which a device runs slower than it was asked to; the others are its owner's settings,
# its power cap, under which both sides of a comparison run, and idling.
HELD_BACK = {
    0x08: "hardware slowdown",
    0x20: "too hot",
    0x40: "too hot, by hardware",
    0x80: "power brake",
}


class ProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_t of the functions whose names end in _v3."""

    _fields_: ClassVar = [
        ("pid", c_uint),
        ("bytes", c_ulonglong),
        ("instance", c_uint),
        ("compute_instance", c_uint),
    ]


class ProcessUse(ctypes.Structure):
    """nvmlProcessUtilizationSample_t: `since` in microseconds of the epoch, shares in percent."""

    _fields_: ClassVar = [
        ("pid", c_uint),
        ("since", c_ulonglong),
        ("core", c_uint),
        ("memory", c_uint),
        ("encoder", c_uint),
        ("decoder", c_uint),
    ]


class Nvml:
    """The library and one device of it."""

    def __init__(self, library: ctypes.CDLL, handle: c_void_p) -> None:
        self._library, self._handle = library, handle

    def state(self) -> dict[str, Json]:
        """What the device says of itself; a question it does not answer has no entry."""
        ask = self._asked
        answers: dict[str, Json | None] = {
            "sm_mhz": ask("nvmlDeviceGetClockInfo", c_uint, c_int(CORE)),
            "memory_mhz": ask("nvmlDeviceGetClockInfo", c_uint, c_int(MEMORY)),
            "celsius": ask("nvmlDeviceGetTemperature", c_uint, c_int(0)),
            "milliwatts": ask("nvmlDeviceGetPowerUsage", c_uint),
            "limit_milliwatts": ask("nvmlDeviceGetEnforcedPowerLimit", c_uint),
            "throttle_reasons": self.throttle_reasons(),
        }
        return {name: value for name, value in answers.items() if value is not None}

    def core_mhz(self) -> int:
        """The clock of its multiprocessors now, 0 where it does not say."""
        return self._asked("nvmlDeviceGetClockInfo", c_uint, c_int(CORE)) or 0

    def processes(self) -> set[int]:
        """Those that have a context on the device, as this machine numbers them."""
        name = "nvmlDeviceGetComputeRunningProcesses_v3"
        return {int(found.pid) for found in self._listed(name, ProcessInfo)}

    def computed_since(self, microseconds: int) -> set[int]:
        """The processes whose kernels ran on the device since then; the device samples that several
        times a second, and some do not."""
        name, since = "nvmlDeviceGetProcessUtilization", c_ulonglong(microseconds)
        used = self._listed(name, ProcessUse, since)
        return {int(use.pid) for use in used if use.core and use.since >= microseconds}

    def _listed(self, name: str, kind: Any, *arguments: c_ulonglong) -> list[Any]:
        function = getattr(self._library, name, None)
        room, count = (kind * MOST_PROCESSES)(), c_uint(MOST_PROCESSES)
        if function is None:
            return []
        given = (room, byref(count)) if arguments else (byref(count), room)
        if function(self._handle, *given, *arguments) != OK:
            return []
        return list(room[: count.value])

    def throttle_reasons(self) -> int | None:
        """The bits of why its clocks are what they are."""
        return self._asked("nvmlDeviceGetCurrentClocksThrottleReasons", c_ulonglong)

    def driver(self) -> str | None:
        """The version of the driver."""
        text = ctypes.create_string_buffer(TEXT)
        function = getattr(self._library, "nvmlSystemGetDriverVersion", None)
        if function is None or function(text, c_uint(TEXT)):
            return None
        return text.value.decode(errors="replace")

    def _asked(
        self, name: str, kind: Callable[[], c_uint | c_ulonglong], *arguments: c_int
    ) -> int | None:
        function = getattr(self._library, name, None)
        answer = kind()
        if function is None or function(self._handle, *arguments, byref(answer)):
            return None
        return int(answer.value)


def held_back(reasons: int | None) -> str:
    """The reasons that spoil a timing, in words; empty where there are none."""
    return ", ".join(words for bit, words in HELD_BACK.items() if (reasons or 0) & bit)


@cache
def opened(uuid: str) -> Nvml | None:
    """The device with this identifier, None where the library or the device is not to be had."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    handle = c_void_p()
    if library.nvmlInit_v2():
        return None
    if library.nvmlDeviceGetHandleByUUID(c_char_p(uuid.encode()), byref(handle)):
        return None
    return Nvml(library, handle)
