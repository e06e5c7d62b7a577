"""Whether a process that did something earlier still runs, or only its number does."""

import os
from pathlib import Path

SLACK_SECONDS = 2.0
STATE, STARTED = 0, 19  # of /proc/PID/stat, counted behind the name


def alive(process: int, seen_at: float) -> bool:
    """Whether `process`, which ran at the time `seen_at`, has not ended since.

    A number is used again after its process ended, in a container soon; and a killed process keeps
    its number, as a zombie, until its parent asks for it.
    """
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/stat").read_text(encoding="ascii").split("btime ")[1].split()[0]
    except FileNotFoundError:
        return not Path("/proc/self/stat").exists() and _answers(process)
    fields = text.rpartition(")")[2].split()
    started = int(boot) + int(fields[STARTED]) / os.sysconf("SC_CLK_TCK")
    return fields[STATE] not in "ZX" and started <= seen_at + SLACK_SECONDS


def _answers(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
