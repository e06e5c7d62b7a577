"""The revision trees: a picture, and a table of every candidate in it."""

from collections.abc import Callable

from kernelforge_engine.exchanges import Attempt
from kernelforge_engine.records import Node, Outcome, Status
from kernelforge_engine.reporting import CardReport, ProjectReport, TargetReport
from kernelforge_engine.usage import Spending
from kernelforge_server.report import figures
from kernelforge_server.report.drawing import drawn
from kernelforge_server.report.sheets import Cell, Picture, Section, Table, Tone, columns
from kernelforge_server.report.targets import inputs, worked_on
from kernelforge_tools.wording import counted, first_error

MOST_TREES = 24
MOST_ROWS = 150
TONES: dict[str, Tone] = {Outcome.FASTER: "good", Outcome.SLOWER: "bad"}
Redact = Callable[[str], str]


def trees_section(found: ProjectReport, redact: Redact) -> Section | None:
    """The tree of every target that was worked on."""
    worked = list(worked_on(found))
    if not worked:
        return None
    left = figures.more(len(worked) - MOST_TREES, "tree")
    text = (
        "Every candidate hangs below the one it was made from; the thick line leads to the best. "
        "Dots are speed-ups over eager, the lines through them intervals."
    )
    return Section(
        name="trees",
        heading="How the kernels came about",
        texts=(text, *([left] if left else [])),
        pictures=tuple(_picture(found, *pair, redact) for pair in worked[:MOST_TREES]),
    )


def _picture(
    found: ProjectReport, one: CardReport, target: TargetReport, redact: Redact
) -> Picture:
    best = target.best
    source = redact(target.source) if target.source else None
    return Picture(
        heading=f"{one.card.operator}, {target.variant.id}",
        aside=redact(inputs(target.variant)),
        drawing=drawn(target.nodes, target.attempts, best),
        table=_table(found, target, redact),
        source=source,
        source_of=f"The source of {best.id}" if best else "",
    )


def _table(found: ProjectReport, target: TargetReport, redact: Redact) -> Table:
    """Nodes and attempts in the order in which they came."""
    rows = [(n.created_at, _node(n, found.parts.get(n.id), redact))
            for n in target.nodes if n.parent_id is not None]  # fmt: skip
    rows += [(a.created_at, _attempt(a, found.parts.get(a.id), redact)) for a in target.attempts]
    rows.sort(key=lambda pair: (pair[0], pair[1][0].text))
    failed = len(target.attempts)
    said = f"{counted(target.candidates, 'candidate')}, {failed} of them refused"
    return Table(
        caption=f"{said}, in the order in which they came",
        columns=columns("Candidate", "Made from", "Author and idea", "Found", ">Time", ">Cost"),
        rows=tuple(row for _, row in rows[:MOST_ROWS]),
        left=figures.more(len(rows) - MOST_ROWS, "candidate"),
    )


def _node(node: Node, spent: Spending | None, redact: Redact) -> tuple[Cell, ...]:
    timing, verdict = node.timing, node.verdict
    if timing is not None:
        result = f"{timing.outcome}, {figures.speedup(timing)}"
        words = Cell(text=result, more=(node.label,), tone=TONES.get(timing.outcome, ""))
    elif verdict is not None and verdict.status != Status.VALID:
        words = Cell(text="found wrong later", more=(redact(verdict.reason),), tone="bad")
    else:
        words = Cell(text="valid, not timed", more=(node.label,))
    took = figures.time(timing.candidate_us) if timing else figures.NONE
    return (
        Cell(text=node.id),
        Cell(text=node.parent_id or figures.NONE),
        Cell(text=redact(node.author), more=(redact(node.note),) if node.note else ()),
        words,
        Cell(text=took),
        _cost(spent),
    )


def _attempt(attempt: Attempt, spent: Spending | None, redact: Redact) -> tuple[Cell, ...]:
    verdict = attempt.verdict
    error = first_error(verdict.log)
    why = [redact(verdict.reason), *([redact(error)] if error else [])]
    return (
        Cell(text=attempt.id),
        Cell(text=attempt.parent_id),
        Cell(text=redact(attempt.author), more=(redact(attempt.note),) if attempt.note else ()),
        Cell(text=verdict.status.replace("_", " "), more=tuple(why), tone="bad"),
        Cell(text=figures.NONE),
        _cost(spent),
    )


def _cost(spent: Spending | None) -> Cell:
    if spent is None:
        return Cell(text=figures.NONE)
    devices = [figures.device(spent.device_seconds)] if spent.device_seconds else []
    if not spent.reports:
        return Cell(text=devices[0] if devices else figures.NONE)
    return Cell(text=figures.cost(spent), more=(f"{figures.tokens(spent)} tokens", *devices))
