"""How many quartets there is time for: seconds shared out among what is still to be measured."""

import time
from collections.abc import Callable

from kernelforge_engine.statistics import FEWEST

QUARTETS = 24
OUTLASTED = 1.1  # samples that turn out slower than the first one still fit


class OutOfTime(Exception):
    """Why something was not measured."""

    def __init__(self, *, needed: float, left: float) -> None:
        super().__init__(
            f"{FEWEST} quartets of it would take about {needed:.0f} s, and {max(left, 0.0):.0f} s "
            "of the time allowed were left for it"
        )


class Budget:
    """Seconds for `parts` comparisons; what one does not use is there for the next."""

    def __init__(
        self, seconds: float, parts: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock, self._parts = clock, max(parts, 1)
        self._end = clock() + seconds

    def quartets(self, quartet_s: float) -> int:
        """The quartets of the next part, each of which takes so long.

        Raises:
            OutOfTime: there is no time for as many as an interval needs.
        """
        left = (self._end - self._clock()) / self._parts
        self.skip()
        fitting = int(left / (OUTLASTED * max(quartet_s, 1e-9)))
        if fitting < FEWEST:
            raise OutOfTime(needed=FEWEST * OUTLASTED * quartet_s, left=left)
        return min(QUARTETS, fitting)

    def add(self, parts: int) -> None:
        """So many parts more."""
        self._parts += parts

    def skip(self) -> None:
        """One part less: it needed no time, or could not be measured."""
        self._parts = max(self._parts - 1, 1)
