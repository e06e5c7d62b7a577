"""One timing at a time on a device, whichever process of this user asks for it."""

import fcntl
import logging
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

POLL_SECONDS = 0.05

log = logging.getLogger(__name__)


@asynccontextmanager
async def turn(cache: Path, device: str, waiting: Callable[[], None]) -> AsyncIterator[None]:
    """Hold a device's lock file in a cache folder; `waiting` is called if another holds it.

    The lock is the kernel's, so that it ends with the process that holds it, however that ends. A
    folder that cannot be written has none: then nobody is waited for, which is logged.
    """
    descriptor = _opened(cache / "locks" / f"{re.sub(r'[^A-Za-z0-9-]+', '-', device)}.lock")
    if descriptor is None:
        yield
        return
    try:
        said = False
        while not _taken(descriptor):
            if not said:
                waiting()
                said = True
            await anyio.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _opened(file: Path) -> int | None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        log.info("timings of other processes are not waited for: %s", error)
        return None


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
