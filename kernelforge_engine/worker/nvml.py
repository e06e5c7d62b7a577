"""The state of an NVIDIA device through its management library, where that is installed."""

import ctypes
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, c_uint, c_ulonglong, c_void_p
from functools import cache

from kernelforge_engine.calls import Json

LIBRARY = "libnvidia-ml.so.1"
CORE, MEMORY = 1, 2
TEXT = 96
# Reasons for which a device runs slower than it was asked to; the others are its owner's settings,
# its power cap, under which both sides of a comparison run, and idling.
HELD_BACK = {
    0x08: "hardware slowdown",
    0x20: "too hot",
    0x40: "too hot, by hardware",
    0x80: "power brake",
}


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
