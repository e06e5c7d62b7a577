"""What a run may spend, and what it has spent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MILLION = 1_000_000
NEARLY = 0.8


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that a run may take, and the speed-up that is enough; None is no limit."""

    dollars: float | None = None
    turns: int | None = None
    wall_s: float | None = None
    gpu_s: float | None = None
    candidates: int | None = None
    enough: float | None = None


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars for a million tokens of each kind."""

    per_million: Mapping[str, float]

    def dollars(self, tokens: Mapping[str, int]) -> float | None:
        """What tokens cost, None where that of a kind of them is not known."""
        used = {kind: count for kind, count in tokens.items() if count}
        if not used.keys() <= self.per_million.keys():
            return None
        return sum(self.per_million[kind] * count for kind, count in used.items()) / MILLION


@dataclass(kw_only=True)
class Meter:
    """What all authors of a run have spent together."""

    budget: Budget
    turns: int = 0
    candidates: int = 0
    dollars: float = 0.0
    dearest: float = 0.0
    """The turn that cost most."""
    unpriced: int = 0
    """Turns whose cost nobody could tell."""
    tokens: dict[str, int] = field(default_factory=dict)
    wall_s: float = 0.0
    gpu_s: float | None = None

    def took(self, tokens: Mapping[str, int] | None) -> None:
        """Count a turn."""
        self.turns += 1
        for kind, count in (tokens or {}).items():
            self.tokens[kind] = self.tokens.get(kind, 0) + count

    def cost(self, dollars: float | None) -> None:
        """Count what a turn cost."""
        if dollars is None:
            self.unpriced += 1
            return
        self.dollars += dollars
        self.dearest = max(self.dearest, dollars)

    def reached(self) -> str | None:
        """The limit that leaves no room for one more request, in words; one as dear as the dearest
        must still fit."""
        for name, spent, most in self._limits(self.dollars + self.dearest):
            if spent >= most:
                return f"{name}: {self._plain(name, spent)} of {most:g}"
        return None

    def nearly(self) -> str | None:
        """The limit of which most is used, in words."""
        for name, spent, most in self._limits(self.dollars):
            if spent >= NEARLY * most:
                return f"{name}: {spent:.3g} of {most:g}"
        return None

    def _plain(self, name: str, spent: float) -> str:
        if name != "dollars":
            return f"{spent:.3g}"
        return f"{self.dollars:.3g} spent and {self.dearest:.3g} for the next request"

    def _limits(self, dollars: float) -> list[tuple[str, float, float]]:
        limits = [
            ("dollars", dollars, self.budget.dollars),
            ("turns", self.turns, self.budget.turns),
            ("candidates", self.candidates, self.budget.candidates),
            ("seconds", self.wall_s, self.budget.wall_s),
            ("device seconds", self.gpu_s or 0.0, self.budget.gpu_s),
        ]
        return [(name, spent, most) for name, spent, most in limits if most is not None]
