"""Runners that are started before they are needed: a Python process, and on CUDA a context, take
longer than most candidates do.

Nothing of a candidate, and no secret, is in one before it is taken. They start while a candidate is
judged or an answer is on its way, never while something is timed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from kernelforge_engine.calls import Backend, Call
from kernelforge_engine.pool import frames
from kernelforge_engine.pool.child import Child, Ended
from kernelforge_engine.pool.protocol import Begin, Done, RunnerReply

KEPT = 2  # a benchmark takes two: a win is measured again in a fresh one
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
    told to."""

    _kind: Kind | None = None
    _begun: list[Child] = field(default_factory=list)
    _told: list[Child] = field(default_factory=list)

    def take(self, kind: Kind) -> Child:
        """A Runner of this kind, one that waits if there is one."""
        if self._kind == kind:
            self.settle()
            while self._begun:
                runner = self._begun.pop()
                if runner.alive:
                    return runner
                runner.kill()
        return _started(kind)

    def fill(self, kind: Kind) -> None:
        """Start as many as are kept; this does not wait for them."""
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
        """Wait until none is starting any more. One that cannot start is forgotten: who needs it
        starts another, and hears why."""
        while self._told:
            runner = self._told.pop()
            try:
                reply = runner.hear(RunnerReply, BEGIN_SECONDS)
            except (Ended, frames.Silent):
                continue
            if isinstance(reply, Done):
                self._begun.append(runner)
            else:
                runner.kill()

    def close(self) -> None:
        """End those that wait."""
        for runner in (*self._begun, *self._told):
            runner.kill()
        self._begun.clear()
        self._told.clear()


def _started(kind: Kind) -> Child:
    return Child("Runner", "kernelforge_engine.runner", environment=kind.environment)


SPARES = Spares()
