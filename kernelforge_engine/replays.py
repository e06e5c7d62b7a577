"""What the nodes and attempts of a project were, and what they are on the machine of today."""

from dataclasses import dataclass

from kernelforge_engine.records import Status, Timing, Verdict


@dataclass(frozen=True, kw_only=True)
class Here:
    """What the outcome of a replay may depend on; devices and architectures by backend."""

    devices: dict[str, str]
    archs: dict[str, str]
    torch: str
    kernelforge: str


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """A node or an attempt: `before` and `then` are what the project knows of it, `verdict` and
    `now` what was found here, or `why` it could not be judged or timed."""

    id: str
    variant_id: str
    operator: str
    variant: str
    before: Status
    then: Timing | None
    verdict: Verdict | None = None
    now: Timing | None = None
    why: str = ""

    @property
    def is_lost(self) -> bool:
        """Whether it was valid, and nothing says that it still is."""
        return self.before == Status.VALID and (
            self.verdict is None or self.verdict.status != Status.VALID
        )

    @property
    def change(self) -> str:
        """What is other than before, in words; empty where nothing is."""
        if self.verdict is None:
            return f"not judged: {self.why}"
        if self.verdict.status != self.before:
            return f"{self.before} -> {self.verdict.status}: {self.verdict.reason}"
        if self.now is None:
            return f"not timed: {self.why}" if self.why else ""
        return _changed(self.then, self.now)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A replay of a whole project; `resumed` of its rows were found before it was interrupted."""

    id: int
    here: Here
    started_at: float
    rows: tuple[Replayed, ...]
    resumed: int

    @property
    def lost(self) -> tuple[str, ...]:
        """What was valid and is not any more, or could not be judged."""
        return tuple(row.id for row in self.rows if row.is_lost)

    @property
    def unsettled(self) -> tuple[str, ...]:
        """What could not be judged, or not be timed."""
        return tuple(row.id for row in self.rows if row.why)


def _changed(then: Timing | None, now: Timing) -> str:
    if then is None:
        return "timed for the first time"
    if then.outcome != now.outcome:
        return f"{then.outcome} -> {now.outcome}"
    if now.low > then.high:
        return "its speed-up is higher"
    return "its speed-up is lower" if now.high < then.low else ""
