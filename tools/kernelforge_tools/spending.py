"""What was spent, as an agent reads it."""

from collections.abc import Iterable
from typing import Literal

from kernelforge_engine.accounts import Accounts
from kernelforge_engine.usage import Spending
from kernelforge_tools.answer import View
from kernelforge_tools.wording import brief, rounded, shortened_list

SHOWN_ARMS = 3
SHOWN_MODELS = 3

Dollars = float | Literal["unknown"]


class SpendingView(View):
    """Reported tokens and calls, dollars, and the seconds that devices worked."""

    reports: int
    calls: int
    tokens: dict[str, int]
    dollars: Dollars
    """`unknown` where a model without a known price has part in it."""
    known_dollars: float | None = None
    """The part that is known, where not all is."""
    unknown_models: list[str] | None = None
    price_dates: dict[str, str] | None = None
    """The day on which the price of a model was read, where a table priced it."""
    wall_s: float | None = None
    device_s: dict[str, float]
    accepted_kernels: int
    """Found faster than eager by a benchmark; those of the library do not count."""
    dollars_per_accepted: Dollars | None = None
    tokens_per_accepted: float | None = None
    model_wins: int | None = None
    """Targets with such a kernel in an exported cast that was measured to make a model faster."""
    dollars_per_model_win: Dollars | None = None

    @classmethod
    def of(cls, spent: Spending) -> "SpendingView":
        """The view of sums."""
        known = spent.dollars is not None
        each = in_dollars(spent.dollars_per_accepted if known else None)
        tokens_each = spent.tokens_per_accepted
        return cls(
            reports=spent.reports,
            calls=spent.calls,
            tokens=spent.tokens,
            dollars=in_dollars(spent.dollars),
            known_dollars=None if known else rounded(spent.known_dollars),
            unknown_models=shortened_list(_names(spent.unknown_models), SHOWN_MODELS) or None,
            price_dates=dict(list(spent.price_dates.items())[:SHOWN_MODELS]) or None,
            wall_s=None if spent.wall_seconds is None else rounded(spent.wall_seconds),
            device_s={device: rounded(s) for device, s in spent.device_seconds.items()},
            accepted_kernels=spent.accepted,
            dollars_per_accepted=each if spent.accepted else None,
            tokens_per_accepted=None if tokens_each is None else rounded(tokens_each),
            model_wins=spent.wins or None,
            dollars_per_model_win=in_dollars(spent.dollars_per_win) if spent.wins else None,
        )


def _names(models: Iterable[str]) -> list[str]:
    return [brief(model) or "" for model in models]


class ArmRow(View):
    """What one arm of an experiment came to; its kernels are those that its reports name."""

    arm: str
    reports: int
    tokens: int
    dollars: Dollars
    accepted_kernels: int


def in_dollars(amount: float | None) -> Dollars:
    """An amount as it is shown: what is not known is said to be so, and is never 0."""
    return "unknown" if amount is None else rounded(amount)


async def spending(accounts: Accounts, about: str | None = None) -> SpendingView | None:
    """What was spent, None where nothing is on record."""
    spent = await accounts.spending(about=about)
    return SpendingView.of(spent) if spent.reports or spent.device_seconds else None


async def arm_rows(accounts: Accounts) -> list[ArmRow]:
    """The latest arms."""
    rows = []
    for arm in (await accounts.arms())[:SHOWN_ARMS]:
        spent = await accounts.spending(arm=arm)
        rows.append(
            ArmRow(
                arm=brief(arm) or "",
                reports=spent.reports,
                tokens=sum(spent.tokens.values()),
                dollars=in_dollars(spent.dollars),
                accepted_kernels=spent.accepted,
            )
        )
    return rows
