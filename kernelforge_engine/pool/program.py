"""A program that is not ours, in a session of its own, killed as a group when its time is over."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


class Program:
    """A running command whose standard output and error go to a file.

    Args:
        command: the program and its arguments; no shell reads them.
        environment: its whole environment.
        words: the file for what it writes; the folder of that file is where it runs.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], words: Path) -> None:
        self._words = words
        with words.open("wb") as file:
            self._process = subprocess.Popen(  # noqa: S603
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=dict(environment),
                cwd=words.parent,
                start_new_session=True,
            )

    def ended(self, seconds: float) -> int | None:
        """Its exit status, None where it took longer; nothing of its session runs any more."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    @property
    def words(self) -> str:
        """What it has written so far."""
        return self._words.read_text("utf-8", errors="replace")
