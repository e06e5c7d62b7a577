"""What a run spends: reported to the server, which knows prices and devices, and kept in bounds."""

import math
from collections.abc import Callable

from kernelforge_agent.budget import Meter
from kernelforge_agent.conversation import Json, ToolCall, ToolOutcome, Turn
from kernelforge_agent.errors import NotPossible
from kernelforge_agent.findings import Findings
from kernelforge_agent.forge import USAGE, Forge
from kernelforge_agent.job import Job
from kernelforge_agent.journal import Journal, of


class Accounts:
    """The accounts of all authors of a run; `findings` holds what each of them has found."""

    def __init__(self, job: Job, forge: Forge, model: str, clock: Callable[[], float]) -> None:
        self.meter = Meter(budget=job.budget)
        self.findings: list[Findings] = []
        self._forge, self._model, self._clock = forge, model, clock
        self._price, self._arm = job.price, job.arm
        self._device_s_before = 0.0

    def begin(self, device_s_before: float) -> None:
        """Count the seconds that devices work from here on.

        Raises:
            NotPossible: the server counts none, and the budget is in them.
        """
        if self.meter.budget.gpu_s is not None and not self._forge.has(USAGE):
            step = "leave out --max-gpu-time, or take a newer server"
            raise NotPossible(why="this server does not count the time of devices", step=step)
        self._device_s_before = device_s_before

    def recall(self, journal: Journal) -> None:
        """Count what an earlier process spent."""
        for record in of(journal.own, "message"):
            self.meter.took(record["tokens"])
        for record in of(journal.own, "cost"):
            self.meter.cost(record["dollars"])

    async def report(self, journal: Journal, turn: Turn, number: int, about: str | None) -> None:
        """Report a turn, once, as spent on a node, an attempt or a card; None for the project.

        Raises:
            ServerFailed
        """
        if any(r["turn"] == number for kind in ("usage", "cost") for r in journal.of(kind)):
            return
        own = None if turn.tokens is None else self._own_price(turn.tokens)
        if not turn.tokens or not self._forge.has(USAGE):
            self._cost(journal, number, own)
            return
        # Written down before it is sent: one that was sent and not heard of is sent again as it
        # was, and its key makes the server count it once.
        said: Json = {
            "key": f"{journal.name}.{number}",
            "model": self._model,
            "tokens": turn.tokens,
            "about": about,
            "arm": self._arm,
            "dollars": own,
            "wall_s": journal.of("message")[number - 1]["seconds"],
        }
        report = {name: value for name, value in said.items() if value is not None}
        journal.write("usage", turn=number, report=report)
        await self._send(journal, number, report)

    async def settle(self, journal: Journal) -> None:
        """Send the reports that an earlier process left unanswered.

        Raises:
            ServerFailed
        """
        answered = {record["turn"] for record in journal.of("cost")}
        for record in journal.of("usage"):
            if record["turn"] not in answered:
                await self._send(journal, record["turn"], record["report"])

    async def reached(self) -> str | None:
        """The limit that leaves no room for one more request, in words.

        Raises:
            NotPossible: the budget is in dollars, and nobody knows the price.
            ServerFailed
        """
        meter = self.meter
        meter.wall_s = self._clock()
        if meter.budget.dollars is not None and meter.unpriced:
            step = "give --price input=..,output=.., or leave out --max-cost-usd"
            raise NotPossible(why=f"nobody knows what {self._model} costs", step=step)
        if meter.budget.gpu_s is not None:
            meter.gpu_s = await self._device_s() - self._device_s_before
        return self._counted().reached()

    def nearly(self) -> str | None:
        """The limit of which most is used, in words."""
        return self._counted().nearly()

    def _counted(self) -> Meter:
        self.meter.candidates = sum(found.candidates for found in self.findings)
        return self.meter

    def enough(self) -> str | None:
        """That a kernel is as fast as was wanted, in words."""
        wanted = self.meter.budget.enough
        if wanted is None:
            return None
        reached = (found.reaching(wanted) for found in self.findings)
        return next((words for words in reached if words), None)

    def left_s(self) -> float:
        """What is left of the run's time."""
        most = self.meter.budget.wall_s
        return math.inf if most is None else most - self._clock()

    async def device_s(self) -> float | None:
        """The seconds that devices worked since the run began, where the server counts them."""
        if not self._forge.has(USAGE):
            return None
        return round(await self._device_s() - self._device_s_before, 3)

    def _own_price(self, tokens: dict[str, int]) -> float | None:
        if not tokens:
            return 0.0  # what is played costs nothing
        return self._price.dollars(tokens) if self._price else None

    async def _send(self, journal: Journal, number: int, report: Json) -> None:
        call = ToolCall(id=report["key"], tool=USAGE, arguments=report)
        answer = await self._forge.call(call, lambda _: None)
        dollars = answer.data.get("dollars", report.get("dollars"))
        known = dollars if isinstance(dollars, int | float) else None  # a word where none knows it
        self._cost(journal, number, known, error=answer.error)

    def _cost(self, journal: Journal, number: int, dollars: float | None, error: str = "") -> None:
        self.meter.cost(dollars)
        journal.write("cost", turn=number, dollars=dollars, error=error, total=self.meter.dollars)

    async def _device_s(self) -> float:
        return device_seconds(await self._forge.status())


def device_seconds(status: ToolOutcome) -> float:
    """How long devices have worked for a project, as get_status tells of it."""
    used = status.data.get("usage") or {}
    return float(sum((used.get("device_s") or {}).values()))
