"""`kernelforge cards`: what a capture found."""

from kernelforge_engine.engine import Engine
from kernelforge_engine.records import Capture, Card
from kernelforge_server.cli.options import CaptureOption, JsonOption, ProjectOption
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import cards_table
from kernelforge_tools.views import CardRow, VariantRow


def cards(
    capture_id: CaptureOption = None, project: ProjectOption = None, as_json: JsonOption = False
) -> None:
    """Show the operators of a capture and their variants, by share of run time."""
    session = Session(project=project, as_json=as_json)

    async def work(engine: Engine) -> tuple[Capture, tuple[Card, ...]]:
        made = await engine.capture_of(capture_id)
        return made, await engine.cards(made.id)

    made, found = session.run(work)
    if as_json:
        session.emit({"capture_id": made.id, "cards": [_document(card) for card in found]})
    else:
        session.show(cards_table(found))


def _document(card: Card) -> dict[str, object]:
    return {
        **CardRow.of(card).model_dump(),
        "variants": [VariantRow.of(variant).model_dump() for variant in card.variants],
    }
