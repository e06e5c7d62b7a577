"""The Judge's own clock beside the times that a Runner reports.

A native candidate shares the Runner's memory, so no reply of a Runner is proof. What it cannot
touch is how long the Judge waited. A sample takes as long as it says, a pass before it, and the
putting back of what its calls write; a reported time that explains the wait of no sample is a
forgery. That is loose on purpose, since a busy machine makes everybody wait: it bounds what a
forged time can gain.
"""

FEWEST = 10
FACTOR = 3.0  # the timed passes, and an untimed one that finds everything cold
BYTES_PER_US = 1000.0  # slower than any memory
MESSAGES_US = 5000.0


class WallClock:
    """Waits and reports since the buffer sets were made."""

    def __init__(self) -> None:
        self.restart(0, 1)

    def restart(self, restored_bytes: int, sets: int) -> None:
        """Begin again with sets of which so many bytes are put back before each use."""
        self._restored, self._sets = restored_bytes, sets
        self._unexplained: list[float] = []

    def disbelieves(self, waited_us: float, us: float, calls: int) -> bool:
        """Whether no sample so far explains how long the Judge waited for it."""
        uses = calls + min(calls, self._sets)
        explained = FACTOR * us * calls + self._restored * uses / BYTES_PER_US + MESSAGES_US
        self._unexplained.append(waited_us - explained)
        return len(self._unexplained) >= FEWEST and min(self._unexplained) > 0
