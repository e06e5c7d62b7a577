"""The accounts of a project: reports of clients, seconds of devices, and what they come to."""

from collections.abc import Callable

from kernelforge_engine.prices import Prices
from kernelforge_engine.store.usage import UsageBook
from kernelforge_engine.store.usage_parts import Noun
from kernelforge_engine.usage import Report, Spending


class Accounts:
    """Files what was spent and sums it up; prices are applied when sums are read, so that a
    corrected table corrects them all."""

    def __init__(self, book: UsageBook, prices: Prices, clock: Callable[[], float]) -> None:
        self._book, self._prices, self._clock = book, prices, clock

    async def record(self, report: Report) -> tuple[str, bool]:
        """File a report; its id, and whether it is new.

        Raises:
            UnknownId, KeyReused, BadOption
        """
        return await self._book.add(report, self._clock())

    def dollars(self, report: Report) -> float | None:
        """What a report comes to, None where that is not known."""
        if report.dollars is not None:
            return report.dollars
        return self._prices.dollars(report.model, report.tokens)

    async def spending(self, *, about: str | None = None, arm: str | None = None) -> Spending:
        """What was spent on a card, a node or an attempt, in an arm, or on the whole project.

        Raises:
            UnknownId: there is no such thing.
        """
        return self._prices.priced(await self._book.tally(about=about, arm=arm))

    async def arms(self) -> tuple[str, ...]:
        """The arms that reports name, the latest first."""
        return await self._book.arms()

    async def parts(self, noun: Noun) -> dict[str, Spending]:
        """What was spent on each node, or on each attempt, by id."""
        found = await self._book.parts(noun)
        return {name: self._prices.priced(tally) for name, tally in found.items()}
