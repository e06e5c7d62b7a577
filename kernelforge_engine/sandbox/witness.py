"""The deny witness: try what must fail, and name what did not."""

import os
import socket

FORBIDDEN_READS = ("/", "/etc/passwd")


def open_doors(*, spawn: bool) -> tuple[str, ...]:
    """What still worked, of "read", "socket" and, unless `spawn`, "process"."""
    attempts = {"read": _reads, "socket": _connects}
    if not spawn:
        attempts["process"] = _forks
    return tuple(name for name, works in attempts.items() if works())


def _reads() -> bool:
    return any(_opens(path) for path in FORBIDDEN_READS)


def _opens(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


def _connects() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def _forks() -> bool:
    try:
        child = os.fork()
    except OSError:
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True
