"""Numbers with their units, as the report shows them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from kernelforge_engine.records import Timing
from kernelforge_engine.usage import Spending
from kernelforge_tools.wording import counted

NONE = "-"
UNKNOWN = "unknown"
MILLISECOND, SECOND = 1e3, 1e6
MINUTE, CENT = 60, 0.01


def time(us: float | None) -> str:
    """Microseconds in the unit that suits them."""
    if us is None:
        return NONE
    size = abs(us)
    if size >= SECOND:
        return f"{us / SECOND:.3g} s" if size < 1000 * SECOND else f"{us / SECOND:.0f} s"
    return f"{us / MILLISECOND:.3g} ms" if size >= MILLISECOND else f"{us:.3g} us"


def seconds(value: float) -> str:
    """How long something took."""
    if value < MINUTE:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def part(value: float | None) -> str:
    """A part of a whole."""
    return NONE if value is None else f"{value:.1%}"


def times(value: float) -> str:
    """A factor, with the digits that it needs to differ from 1."""
    return f"{_factor(value)}x"


def _factor(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.3f}" if 0.9 < value < 1.1 else f"{value:.2f}"


def bounds(low: float, high: float) -> str:
    """An interval."""
    return f"{_factor(low)} to {_factor(high)}"


def speedup(timing: Timing) -> str:
    """A speed-up with its interval."""
    return f"{times(timing.speedup)} ({bounds(timing.low, timing.high)})"


def dollars(amount: float | None) -> str:
    """An amount; one that is not known is said to be so."""
    if amount is None:
        return UNKNOWN
    return f"${amount:,.2f}" if amount >= CENT or not amount else f"${amount:.2g}"


def cost(spent: Spending) -> str:
    """What was spent in dollars; where nobody reported anything, that."""
    if not spent.reports:
        return "none reported"
    if spent.dollars is None and spent.known_dollars:
        return f"{UNKNOWN}, over {dollars(spent.known_dollars)}"
    return dollars(spent.dollars)


def tokens(spent: Spending) -> str:
    """The tokens of every kind together."""
    total = sum(spent.tokens.values())
    return f"{total:,}" if spent.reports else NONE


def kinds(found: Mapping[str, int]) -> str:
    """Tokens by kind."""
    return ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in sorted(found.items()))


def device(found: Mapping[str, float]) -> str:
    """For how long devices were held."""
    return ", ".join(f"{seconds(s)} {name}" for name, s in sorted(found.items())) or NONE


def statuses(found: Mapping[str, int]) -> str:
    """How many were refused, by status."""
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in found.items())


def when(at: float) -> str:
    """A moment."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def more(left: int, noun: str) -> str | None:
    """What a table leaves out."""
    return f"{counted(left, noun)} more." if left > 0 else None
