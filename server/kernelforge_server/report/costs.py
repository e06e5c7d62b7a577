"""What the search cost, and what a win in a whole model did."""

from collections.abc import Callable, Iterator

from kernelforge_engine.reporting import ProjectReport
from kernelforge_engine.usage import Spending
from kernelforge_server.report import figures
from kernelforge_server.report.sheets import Cell, Column, Section, Table, cells, columns
from kernelforge_tools.wording import counted

MOST_CARDS = 20
WIN = (
    "Accepted: kernels that a benchmark found faster than eager, other than the library's.",
    "A win is a target with a kernel in an exported cast with which a whole model was measured to "
    "be faster, all of the interval above 1x, when it was measured last in any of the modes. A "
    "target counts once, however many of its kernels were exported. Kernels with which the model "
    "was found slower do not count, nor do those of the library, which cost no tokens. Its cost "
    "is everything that was spent on the project, failures included, over the number of wins.",
)


def win_figure(spent: Spending) -> str:
    """The cost of a win where there is one."""
    if not spent.wins:
        return "no win yet"
    return figures.dollars(spent.dollars_per_win) if spent.reports else "none reported"


def cost_section(found: ProjectReport, redact: Callable[[str], str]) -> Section:
    """Sums of the project, of cards and of arms."""
    spent = found.spending
    arms = [_arms(found, redact)] if found.arms else []
    return Section(
        name="costs",
        heading="What it cost",
        texts=tuple(redact(text) for text in _texts(found)),
        tables=(_cards(found, spent), *arms),
        small=WIN,
    )


def _texts(found: ProjectReport) -> Iterator[str]:
    spent = found.spending
    if spent.reports:
        yield (
            f"Reported: {figures.cost(spent)} for {figures.kinds(spent.tokens) or 'no'} tokens in "
            f"{counted(spent.calls, 'call')} of language models."
        )
    else:
        yield "No client has reported what its language model cost."
    if spent.unknown_models:
        yield f"No price is known for {', '.join(spent.unknown_models)}."
    if spent.price_dates:
        dated = ", ".join(f"{m} ({read})" for m, read in sorted(spent.price_dates.items()))
        yield f"List prices, and when they were read: {dated}."
    if spent.device_seconds:
        devices = figures.device(spent.device_seconds)
        yield f"Judging and timing candidates held the device for {devices}."
    yield _each(spent, found.by_library)


def _each(spent: Spending, by_library: int) -> str:
    """The cost of a win, in a sentence that holds its arithmetic."""
    library = counted(by_library, "kernel")
    others = f" {library} of the library won in a model as well." if by_library else ""
    if not spent.wins and by_library:
        return f"Only the library has won in a whole model so far, with {library}: no cost per win."
    if not spent.wins:
        return "No kernel has won in a whole model so far, so there is no cost per win."
    wins = counted(spent.wins, "win")
    if not spent.reports:
        return f"{wins} in whole models; what they cost was not reported.{others}"
    if spent.dollars_per_win is None:
        each = f"{spent.tokens_per_win or 0:,.0f} tokens each; dollars are unknown"
        return f"Cost of a win in a whole model: {each} ({wins}).{others}"
    return (
        f"Cost of a win in a whole model: {figures.dollars(spent.dollars)} over {wins} = "
        f"{figures.dollars(spent.dollars_per_win)} each.{others}"
    )


def _cards(found: ProjectReport, spent: Spending) -> Table:
    rows = [
        _row(one.card.operator, one.card.id, one.spending)
        for one in found.cards
        if one.spending.reports or one.spending.device_seconds
    ]
    left = len(rows) - MOST_CARDS
    total = _row("The whole project", "with what was reported on no card", spent)
    return Table(
        caption="By operator or region",
        columns=_columns("Operator"),
        rows=(*rows[:MOST_CARDS], total),
        left=figures.more(left, "card"),
    )


def _arms(found: ProjectReport, redact: Callable[[str], str]) -> Table:
    rows = [_row(redact(arm), "", spent) for arm, spent in found.arms.items()]
    return Table(caption="By arm", columns=_columns("Arm"), rows=tuple(rows))


def _columns(first: str) -> tuple[Column, ...]:
    return columns(
        first, ">Tokens", ">Dollars", ">Device time", ">Accepted", ">Wins", ">Dollars a win"
    )


def _row(name: str, aside: str, spent: Spending) -> tuple[Cell, ...]:
    return (
        Cell(text=name, more=(aside,) if aside else ()),
        *cells(
            figures.tokens(spent),
            figures.cost(spent),
            figures.device(spent.device_seconds),
            str(spent.accepted),
            str(spent.wins),
            win_figure(spent) if spent.wins else figures.NONE,
        ),
    )
