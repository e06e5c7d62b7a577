"""What compiled code shall serve, known before there is a compiler: importing Inductor takes longer
than loading a cast, and most programs never compile."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.later import when_imported

if TYPE_CHECKING:
    from kernelforge_engine.dispatch.compiled import Substitution
    from kernelforge_engine.dispatch.kernels import Kernel

Served = tuple[Sequence[Call], Sequence["Kernel"]]
INDUCTOR = "torch._inductor.config"


class Compiling:
    """The calls of all enabled casts, handed on once Inductor was imported."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: list[Served] = []
        self._watching = self._there = False

    def add(self, calls: Sequence[Call], kernels: Sequence["Kernel"]) -> None:
        """Serve these calls of operators, and these regions, in what is compiled from now on."""
        with self._lock:
            if self._there:
                _substitution().add(calls, kernels)
                return
            self._waiting.append((calls, kernels))
            if not self._watching:
                self._watching = True
                when_imported(INDUCTOR, self._imported)

    def remove(self, calls: Sequence[Call], kernels: Sequence["Kernel"]) -> None:
        """Serve them no longer."""
        with self._lock:
            if self._there:
                _substitution().remove(calls, kernels)
            else:
                self._waiting.remove((calls, kernels))

    def _imported(self) -> None:
        with self._lock:
            self._there = True
            for calls, kernels in self._waiting:
                _substitution().add(calls, kernels)
            self._waiting.clear()


def _substitution() -> "Substitution":
    from kernelforge_engine.dispatch.compiled import substitution

    return substitution


compiling = Compiling()
