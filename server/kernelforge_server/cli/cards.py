"""`kernelforge cards`: what a capture found."""

from typing import Annotated

import typer

from kernelforge_engine.engine import Engine
from kernelforge_engine.records import Capture, Card
from kernelforge_server.cli.options import CaptureOption, JsonOption, ProjectOption
from kernelforge_server.cli.overview import Sort, show_cards
from kernelforge_server.cli.session import Session
from kernelforge_tools.ranking import ranked
from kernelforge_tools.views import CardRow, VariantRow


def cards(
    capture_id: CaptureOption = None,
    sort: Annotated[
        Sort, typer.Option(help="By share of run time, or by what a kernel could save of it.")
    ] = Sort.GAIN,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the operators, regions and shape families of a capture."""
    session = Session(project=project, as_json=as_json)

    async def work(engine: Engine) -> tuple[Capture, tuple[Card, ...]]:
        made = await engine.capture_of(capture_id)
        return made, await engine.cards(made.id)

    made, found = session.run(work)
    if as_json:
        documents = [_document(card) for card in ranked(found, sort.value)]
        session.emit({"capture_id": made.id, "cards": documents})
    else:
        show_cards(session, made, found, sort, everything=True)


def _document(card: Card) -> dict[str, object]:
    return {
        **CardRow.of(card).model_dump(),
        "variants": [VariantRow.of(variant).model_dump() for variant in card.variants],
    }
