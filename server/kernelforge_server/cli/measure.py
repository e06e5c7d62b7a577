"""`kernelforge measure`: a whole model with and without a cast."""

from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Measurement, MeasureRequest
from kernelforge_server.cli.options import (
    DeviceOption,
    EntryArgument,
    InputsOption,
    JsonOption,
    ProjectOption,
)
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import call_lines, measurement_table, outcome
from kernelforge_tools.entries import absolute, model_name


def measure(
    entry: EntryArgument,
    cast: Annotated[Path, typer.Option(metavar="X.cast", help="The cast to try.")],
    inputs: InputsOption = "make_inputs",
    device: DeviceOption = "cpu",
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a whole model with and without a cast, on its own example inputs."""
    session = Session(project=project, as_json=as_json)
    request = MeasureRequest(
        model=model_name(entry), cast=absolute(cast), inputs=(inputs,), device=device
    )

    async def work(engine: Engine) -> Measurement:
        with session.progress("measure") as notice:
            return await engine.measure(request, notice)

    measured = session.run(work)
    if as_json:
        session.emit(measurement_document(measured))
        return
    session.show(measurement_table(measured))
    for line in call_lines(measured):
        session.show(line)


def measurement_document(measured: Measurement) -> dict[str, object]:
    """A measurement with its verdict in a word, as JSON values."""
    return {**codec.dump(measured), "outcome": outcome(measured)}
