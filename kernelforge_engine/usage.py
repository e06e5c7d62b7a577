"""What the search costs: what clients report of their models, and what the devices worked."""

import re
from dataclasses import dataclass, field

from kernelforge_engine import codec, limits
from kernelforge_engine.errors import BadOption

KIND = re.compile(r"[a-z][a-z0-9_]{0,31}")
MOST_KINDS = 8
MOST_TOKENS = 10**12
MOST_CALLS = 10**6
MOST_DOLLARS = 10**6
MOST_SECONDS = 10**7


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a client says that it spent, counted once for every `key`.

    Attributes:
        tokens: numbers of tokens by kind, no token in two of them.
        about: the node, attempt or card that it was spent on; None for the whole project.
        arm: the arm of an experiment that it belongs to.
        calls: how many calls of the model it covers.
        dollars: what they cost, where the client knows.

    Raises:
        BadOption: a value is out of its range.
    """

    key: str
    reporter: str
    model: str
    tokens: dict[str, int]
    about: str | None = None
    arm: str | None = None
    calls: int = 1
    dollars: float | None = None
    wall_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("key", "model", "arm"):
            value = getattr(self, name)
            if value == "":
                raise BadOption(field=name, value="", why="it is empty", accepted="a name")
            limits.text(name, value or "", limits.NAME)
        limits.text("client", self.reporter, limits.NAME)
        limits.number("calls", self.calls, 1, MOST_CALLS)
        limits.number("dollars", self.dollars or 0.0, 0, MOST_DOLLARS)
        limits.number("wall_s", self.wall_seconds or 0.0, 0, MOST_SECONDS)
        self._check_tokens()

    def _check_tokens(self) -> None:
        if not self.tokens and self.dollars is None:
            why, accepted = "it says nothing", "tokens by kind, or dollars"
            raise BadOption(field="tokens", value=self.tokens, why=why, accepted=accepted)
        if len(self.tokens) > MOST_KINDS:
            why = f"it has {len(self.tokens)} kinds, and {MOST_KINDS} are the most"
            raise BadOption(field="tokens", value="...", why=why, accepted="fewer kinds")
        for kind, count in self.tokens.items():
            if not KIND.fullmatch(kind):
                accepted = "input, output, cache_read, cache_write, or another lower-case word"
                shown = kind[: limits.SHOWN]
                raise BadOption(field="tokens", value=shown, why="no kind", accepted=accepted)
            limits.number(f"tokens.{kind}", count, 0, MOST_TOKENS)

    @property
    def digest(self) -> str:
        """The hash of all that it says: a key may only ever stand for one report."""
        return codec.sha256(codec.dumps(self))


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The sums of reports, before prices: `unpriced` holds the tokens of those without dollars,
    by model."""

    reports: int = 0
    calls: int = 0
    tokens: dict[str, int] = field(default_factory=dict)
    dollars: float = 0.0
    unpriced: dict[str, dict[str, int]] = field(default_factory=dict)
    wall_seconds: float | None = None
    device_seconds: dict[str, float] = field(default_factory=dict)
    accepted: int = 0
    wins: int = 0


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What was spent on a project, a card, a node, an attempt or an arm.

    Attributes:
        dollars: all of it, None where a model without a price has part in it.
        known_dollars: the part that is known.
        unknown_models: the models whose price is not known.
        price_dates: of the models that the price table priced, the day their price was read.
        wall_seconds: the sum of what was reported, None where nobody did.
        device_seconds: what the engine measured, by device.
        accepted: kernels that a benchmark found faster than eager, other than the library's.
        wins: targets with such a kernel in an exported cast with which a whole model was measured
            to be faster, beyond its interval; one with which the model is slower does not count.
    """

    reports: int
    calls: int
    tokens: dict[str, int]
    dollars: float | None
    known_dollars: float
    unknown_models: tuple[str, ...]
    price_dates: dict[str, str]
    wall_seconds: float | None
    device_seconds: dict[str, float]
    accepted: int
    wins: int

    @property
    def dollars_per_accepted(self) -> float | None:
        """Everything that was spent, failures too, for each accepted kernel."""
        return self.dollars / self.accepted if self.accepted and self.dollars is not None else None

    @property
    def tokens_per_accepted(self) -> float | None:
        """Every token of every kind, for each accepted kernel."""
        return sum(self.tokens.values()) / self.accepted if self.accepted else None

    @property
    def dollars_per_win(self) -> float | None:
        """Everything that was spent, failures too, for each win in a whole model."""
        return self.dollars / self.wins if self.wins and self.dollars is not None else None

    @property
    def tokens_per_win(self) -> float | None:
        """Every token of every kind, for each win in a whole model."""
        return sum(self.tokens.values()) / self.wins if self.wins else None
