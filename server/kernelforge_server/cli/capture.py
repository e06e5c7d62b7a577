"""`kernelforge capture`: record a model."""

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest
from kernelforge_engine.records import Capture, Card
from kernelforge_server.cli.options import (
    DeviceOption,
    EntryArgument,
    InputsOption,
    JsonOption,
    ProjectOption,
)
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import cards_table, microseconds
from kernelforge_tools.entries import model_name
from kernelforge_tools.views import CardRow
from kernelforge_tools.wording import counted


def capture(
    entry: EntryArgument,
    inputs: InputsOption = "make_inputs",
    device: DeviceOption = "cpu",
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a model once on its example inputs and record every operator it calls."""
    session = Session(project=project, as_json=as_json)
    request = CaptureRequest(model=model_name(entry), inputs=(inputs,), device=device)

    async def work(engine: Engine) -> tuple[Capture, tuple[Card, ...]]:
        with session.progress("capture") as notice:
            made = await engine.capture(request, notice)
        return made, await engine.cards(made.id)

    made, cards = session.run(work)
    if as_json:
        rows = [CardRow.of(card).model_dump() for card in cards]
        session.emit({"capture": codec.dump(made), "cards": rows})
        return
    session.show(capture_line(made, cards))
    session.show(cards_table(cards))


def capture_line(made: Capture, cards: tuple[Card, ...]) -> str:
    """What a capture found, in one line."""
    return (
        f"{made.id}: {counted(made.calls, 'call')} of {counted(len(cards), 'operator')} on "
        f"{made.device_name}; the model takes {microseconds(made.wall_us or 0.0)}, its operators "
        f"{microseconds(made.busy_us)}."
    )
