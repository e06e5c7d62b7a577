"""What a capture found, for people: what holds the model back, then what a kernel could gain."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

from kernelforge_engine.records import Capture, Card, Variant
from kernelforge_server.cli.rows import families_table, operators_table, regions_table
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import microseconds
from kernelforge_tools.findings import BOUND, doubt, not_targets, unseen
from kernelforge_tools.wording import counted, shortened_list

HEADING, ASIDE = "bold", "dim"
MENTIONED_GAIN = 0.005
FEWEST_ROWS = 5
NAMED = 4
BUSY = {"cpu": "the processor works on operators", "cuda": "the GPU works"}


class Sort(StrEnum):
    """What rows are ordered by."""

    SHARE = "share"
    GAIN = "gain"


RANKS: dict[Sort, Callable[[Variant], float]] = {
    Sort.SHARE: lambda v: -v.share,
    Sort.GAIN: lambda v: -v.gain,
}


def capture_line(made: Capture, cards: Sequence[Card]) -> str:
    """What a capture found, in one line."""
    operators = sum(1 for card in cards if not card.is_region)
    line = f"{made.id}: {counted(made.calls, 'call')} of {counted(operators, 'operator')} on "
    line += f"{made.device_name}; "
    if made.wall_us is None:
        return f"{line}its operators take {microseconds(made.busy_us)}."
    return (
        f"{line}the model takes {microseconds(made.wall_us)}, its operators "
        f"{microseconds(made.busy_us)}."
    )


def verdict_line(made: Capture) -> str | None:
    """What holds the model back, and what to do about it."""
    bound = made.believed_bound
    if bound is None or not made.wall_us:
        return None
    busy = f"{BUSY[made.device.partition(':')[0]]} {made.busy_us / made.wall_us:.0%} of the time"
    return f"{bound}: {busy}. {BOUND[bound]}"


def warnings(made: Capture) -> list[str]:
    """What a reader of the tables must know about how they came about."""
    said = [why] if (why := doubt(made)) else []
    if made.error:
        said.append(f"The model raised {made.error}; what it ran before that is below.")
    if made.coverage is not None and (made.coverage < 1 or made.unseen):
        missing = unseen(made)
        said.append(
            f"Recorded: {made.coverage:.1%} of an unobserved run's calls"
            + (f"; not seen: {missing}." if missing else ".")
        )
    if made.level == "decomposed":
        said.append("Its forward needs autograd, so operators are recorded in their parts.")
    if made.output_drift:
        said.append(f"Being observed moved its output by up to {made.output_drift:.2g}.")
    return said


def show_outcome(session: Session, made: Capture, cards: Sequence[Card], busy: str | None) -> None:
    """What a capture came to, and what there is to be doubted of it, on a machine that may be
    `busy`."""
    session.show(capture_line(made, cards))
    if verdict := verdict_line(made):
        session.show(verdict, style=HEADING)
    for warning in (busy, *warnings(made)):
        session.warn(warning)


def show_capture(session: Session, made: Capture, cards: Sequence[Card], busy: str | None) -> None:
    """Everything a person wants to know right after a capture, on a machine that may be `busy`."""
    show_outcome(session, made, cards, busy)
    session.show("")
    show_cards(session, made, cards, Sort.SHARE, everything=False)


def show_cards(
    session: Session, made: Capture, cards: Sequence[Card], sort: Sort, *, everything: bool
) -> None:
    """Operators, regions and shape families; without `everything` those that could gain little are
    counted in a line."""
    exact = [v for c in cards if not c.is_region for v in c.variants if v.family is None]
    regions = [v for c in cards if c.is_region for v in c.variants if v.family is None]
    families = [v for c in cards for v in c.variants if v.family is not None]
    for title, variants, table in (
        ("Operators", exact, operators_table),
        ("Regions (each holds operators from above; their shares overlap)", regions, regions_table),
        ("Shape families (one kernel for all sizes of an operator)", families, families_table),
    ):
        if not variants:
            continue
        ranked = sorted((v for v in variants if v.target), key=RANKS[sort])
        shown = ranked if everything else _mentioned(ranked)
        session.show(title, style=HEADING)
        if shown:
            session.show(table(shown, made))
        if left := ranked[len(shown) :]:
            session.show(_left(left), style=ASIDE)
        session.show("")
    for line in _refusals(exact, regions, cards):
        session.show(line, style=ASIDE)


def _mentioned(ranked: list[Variant]) -> list[Variant]:
    """The first rows, down to the last one that could gain enough to be worth a look."""
    worth = [i for i, v in enumerate(ranked) if v.gain >= MENTIONED_GAIN]
    return ranked[: max(FEWEST_ROWS, worth[-1] + 1 if worth else 0)]


def _left(left: Sequence[Variant]) -> str:
    share = sum(v.share for v in left)
    count = counted(len(left), "more variant")
    return f"{count} ({share:.1%}) with less to gain: kernelforge cards shows all."


def _refusals(
    exact: Sequence[Variant], regions: Sequence[Variant], cards: Sequence[Card]
) -> Iterator[str]:
    """What no kernel is wanted for, so that the shares of operators add up."""
    if found := [v for v in exact if not v.target]:
        share = sum(v.share for v in found)
        head = f"{counted(len(found), 'variant')} ({share:.1%}) of operators"
        yield f"Not targets: {head}: {not_targets(cards)}."
    if names := [f"{_short(v)}, {v.reason}" for v in regions if not v.target]:
        yield f"Not targets: {'; '.join(shortened_list(names, NAMED))}."


def _short(region: Variant) -> str:
    return region.call.operator.partition("::")[2]
