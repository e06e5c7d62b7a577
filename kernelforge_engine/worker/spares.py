"""Runners that are started before they are needed: a Python process, and on CUDA a context, take
longer than most candidates do.

Nothing of a candidate, and no secret, is in one before it is taken. They start while a candidate is
judged or an answer is on its way, and those that were used end meanwhile; never while something is
timed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from kernelforge_engine.calls import Backend, Call
from kernelforge_engine.pool import frames
from kernelforge_engine.pool.child import Child, Ended
from kernelforge_engine.pool.protocol import Begin, Done, RunnerReply

KEPT = 3  # one for a verdict, and a benchmark takes two: a win is measured again in a fresh one
MOST_ENDING = 2
BEGIN_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a Runner is started for; its whole environment is part of that."""

    backend: Backend
    device: int
    environment: Mapping[str, str]

    @classmethod
    def of(cls, call: Call, environment: Mapping[str, str], device: torch.device) -> "Kind":
        """What a candidate for this call is run in."""
        return cls(backend=call.backend, device=device.index or 0, environment=environment)


@dataclass(kw_only=True)
class Spares:
    """The Runners of one kind that wait in this process: those that have begun, and those that were
    told to; and those of any kind that are ending."""

    _kind: Kind | None = None
    _begun: list[Child] = field(default_factory=list)
    _told: list[Child] = field(default_factory=list)
    _ending: list[tuple[Child, Callable[[], None]]] = field(default_factory=list)

    def take(self, kind: Kind) -> Child:
        """A Runner of this kind, one that waits if there is one."""
        while self._kind == kind and (self._begun or self._told):
            if not self._begun:
                self._hear()
                continue
            runner = self._begun.pop()
            if runner.alive:
                return runner
            runner.kill()
        return _started(kind)

    def retire(self, runner: Child, gone: Callable[[], None]) -> None:
        """End one that was used, and call `gone` once its memory can be given back; `settle` waits
        for that."""
        runner.end()
        self._ending.append((runner, gone))
        while len(self._ending) > MOST_ENDING:
            self._bury()

    def fill(self, kind: Kind) -> None:
        """Start as many as are kept; this does not wait for them, nor for those that end."""
        if self._kind != kind:
            self.close()
            self._kind = kind
        while len(self._begun) + len(self._told) < KEPT:
            runner = _started(kind)
            try:
                runner.tell(Begin(backend=kind.backend, device=kind.device))
            except Ended:
                return
            self._told.append(runner)

    def settle(self) -> None:
        """Wait until none is starting or ending any more."""
        while self._told:
            self._hear()
        while self._ending:
            self._bury()

    def close(self) -> None:
        """End those that wait."""
        for runner in (*self._begun, *self._told):
            self.retire(runner, lambda: None)
        self._begun.clear()
        self._told.clear()

    def _bury(self) -> None:
        runner, gone = self._ending.pop(0)
        runner.kill()
        gone()

    def _hear(self) -> None:
        """Wait for the one that was told first. One that cannot start is forgotten: who needs it
        starts another, and hears why."""
        runner = self._told.pop(0)
        try:
            reply = runner.hear(RunnerReply, BEGIN_SECONDS)
        except (Ended, frames.Silent):
            return
        if isinstance(reply, Done):
            self._begun.append(runner)
        else:
            runner.kill()


def _started(kind: Kind) -> Child:
    return Child("Runner", "kernelforge_engine.runner", environment=kind.environment)


SPARES = Spares()
