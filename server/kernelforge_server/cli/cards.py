"""`kernelforge cards`: what a capture found."""

from typing import Annotated

import typer

from kernelforge_engine.engine import Engine
from kernelforge_engine.planning import Planned
from kernelforge_engine.records import Capture, Card
from kernelforge_engine.search.budget import limits
from kernelforge_server.cli.options import CaptureOption, JsonOption, ProjectOption
from kernelforge_server.cli.overview import Sort, show_cards
from kernelforge_server.cli.rows import plan_table
from kernelforge_server.cli.session import Session
from kernelforge_tools.plans import PlanRow
from kernelforge_tools.ranking import ranked
from kernelforge_tools.views import CardRow, VariantRow


def cards(
    capture_id: CaptureOption = None,
    sort: Annotated[
        Sort, typer.Option(help="By share of run time, or by what a kernel could save of it.")
    ] = Sort.GAIN,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Plan this many proposals instead.")
    ] = None,
    each: Annotated[
        str | None,
        typer.Option(
            metavar="N|opt0|opt5|opt10|opt20|opt50",
            help="Plan at most so many proposals for one target.",
        ),
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the operators, regions and shape families of a capture, or how to spend a budget."""
    session = Session(project=project, as_json=as_json)
    if budget is not None or each is not None:
        _planned(session, capture_id, budget, each)
        return

    async def work(engine: Engine) -> tuple[Capture, tuple[Card, ...]]:
        made = await engine.capture_of(capture_id)
        return made, await engine.cards(made.id)

    made, found = session.run(work)
    if as_json:
        documents = [_document(card) for card in ranked(found, sort.value)]
        session.emit({"capture_id": made.id, "cards": documents})
    else:
        show_cards(session, made, found, sort, everything=True)


def _planned(
    session: Session, capture_id: str | None, budget: int | None, each: str | None
) -> None:
    async def work(engine: Engine) -> tuple[Planned, ...]:
        return await engine.planner.plan(capture_id, limits(budget, each))

    rows = [PlanRow.of(planned) for planned in session.run(work)]
    if session.as_json:
        session.emit({"plan": [row.model_dump() for row in rows]})
    else:
        session.show(plan_table(rows))


def _document(card: Card) -> dict[str, object]:
    return {
        **CardRow.of(card).model_dump(),
        "variants": [VariantRow.of(variant).model_dump() for variant in card.variants],
    }
