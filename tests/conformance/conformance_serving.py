"""A server over HTTP in a process of its own, for as long as it is needed."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

FIXTURE_SERVER = Path(__file__).with_name("fixture_server.py")
START_SECONDS = 60


def with_fixtures(project: Path, *options: str) -> list[str]:
    """The command of our server with what the suite calls by name."""
    return [sys.executable, str(FIXTURE_SERVER), str(project), *options]


def product(project: Path) -> list[str]:
    """The command of our server as users start it."""
    words = ["-m", "kernelforge_server", "serve", "--port", "0", "--project", str(project)]
    return [sys.executable, *words]


@contextmanager
def serving(command: Sequence[str], log: Path) -> Iterator[str]:
    """The address of a server that says `Serving URL` once it listens."""
    with log.open("w") as said, subprocess.Popen(command, stderr=said) as process:
        try:
            yield _address(process, log)
        finally:
            process.terminate()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if found := re.search(r"^Serving (http://\S+)$", log.read_text(), re.MULTILINE):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"The server did not start: {log.read_text()}")
