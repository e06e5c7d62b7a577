"""The one module that starts processes: a child in a session of its own, with a channel on its own
descriptor, that is killed as a group and reports how it ended."""

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from pydantic import ValidationError

from kernelforge_engine import codec
from kernelforge_engine.errors import ChildDied, ChildTimedOut
from kernelforge_engine.pool import frames

WORDS = 2000
LAST_WORDS = 300

log = logging.getLogger(__name__)


class Ended(Exception):
    """A child ended before it answered; `signal` names what killed it, or is None."""

    def __init__(self, status: str, words: str, killed_by: int | None) -> None:
        super().__init__(status)
        self.status, self.words, self.killed_by = status, words, killed_by


class Child:
    """A Python module running in a process of its own.

    Args:
        role: the noun used in messages: Builder, Judge, Runner, capture.
        module: what to run with `python -P -m`; it finds its channel's descriptor in `--fd` and
            the process to die with in `--parent`.
        descriptors: further descriptors to hand down, as (option, number).
        environment: the child's whole environment; nothing is inherited besides it.
    """

    def __init__(
        self,
        role: str,
        module: str,
        *,
        descriptors: Sequence[tuple[str, int]] = (),
        environment: Mapping[str, str],
        folder: str | None = None,
    ) -> None:
        self.role = role
        ours, theirs = socket.socketpair()
        self._channel = ours
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed in kill()
        handed = [("--fd", theirs.fileno()), *descriptors]
        options = [("--parent", os.getpid()), *handed]
        arguments = [text for name, number in options for text in (name, str(number))]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=[number for _, number in handed],
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def tell(self, message: object, descriptor: int | None = None) -> None:
        """Send a message, with a descriptor behind it where one is given.

        Raises:
            Ended: the child is gone; it has been reaped.
        """
        try:
            frames.send(self._channel, codec.dumps(message).encode())
            if descriptor is not None:
                frames.hand_over(self._channel, descriptor)
        except frames.Closed as error:
            raise self._ended() from error

    def hear(
        self,
        reply: Any,
        seconds: float | None,
        notice: Callable[[bytes], bool] | None = None,
    ) -> Any:
        """Wait for a reply of type `reply`.

        `notice` sees each frame first and returns True when it has dealt with it (progress).

        Raises:
            Ended: the child is gone, or was killed for a reply that is no message; it has been
                reaped.
            frames.Silent: no reply within `seconds`; the child has been killed.
        """
        try:
            while True:
                frame = frames.receive(self._channel, seconds)
                if not (notice and notice(frame)):
                    return codec.loads(reply, frame)
        except frames.Closed as error:
            raise self._ended() from error
        except ValidationError as error:
            status, words = "a reply that is no message", self.words()
            self.kill()
            raise Ended(status, words, None) from error
        except frames.Silent:
            self.kill()
            raise

    def ask(
        self,
        message: object,
        reply: Any,
        seconds: float | None,
        notice: Callable[[bytes], bool] | None = None,
        descriptor: int | None = None,
    ) -> Any:
        """`tell`, then `hear`."""
        self.tell(message, descriptor)
        return self.hear(reply, seconds, notice)

    def request(
        self,
        task: str,
        message: object,
        reply: Any,
        seconds: float | None,
        notice: Callable[[bytes], bool] | None = None,
    ) -> Any:
        """`ask` of a child of ours whose end is our failure; `task` completes "asked to ...".

        Raises:
            ChildDied, ChildTimedOut
        """
        try:
            return self.ask(message, reply, seconds, notice)
        except Ended as end:
            log.info("the %s process ended with %s:\n%s", self.role, end.status, end.words)
            last = (end.words.splitlines() or ["none"])[-1][:LAST_WORDS].rstrip(".")
            raise ChildDied(role=self.role, status=end.status, task=task, words=last) from end
        except frames.Silent as error:
            raise ChildTimedOut(role=self.role, task=task, seconds=seconds or 0.0) from error

    def _ended(self) -> Ended:
        try:
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:
            code = None
        words = self.words()
        self.kill()
        if code is None:
            return Ended("a closed channel", words, None)
        if code < 0:
            return Ended(signal.Signals(-code).name, words, -code)
        return Ended(f"exit code {code}", words, None)

    def words(self) -> str:
        """The end of what the child wrote to its standard output and error."""
        if self._errors.closed:
            return ""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - WORDS))
        return self._errors.read().decode(errors="replace").strip()

    def end(self) -> None:
        """Tell the whole process group to end, and do not wait for that: `kill` does."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the whole process group and wait for it; safe to call twice and from any thread."""
        self.end()
        self._process.wait()
        self._channel.close()
        self._errors.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
