"""`kernelforge measure`: a whole model with and without a cast."""

from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.exchanges import Measurement
from kernelforge_server.cli.options import (
    DeviceOption,
    DtypeOption,
    GenerateOption,
    InputsOption,
    JsonOption,
    ModelArgument,
    ProjectOption,
    RandomWeightsOption,
)
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import call_lines, measurement_table, outcome
from kernelforge_tools.entries import measure_request


def measure(  # noqa: PLR0913  an option is an argument
    model: ModelArgument,
    cast: Annotated[Path, typer.Option(metavar="X.cast", help="The cast to try.")],
    inputs: InputsOption = None,
    device: DeviceOption = "cpu",
    random_weights: RandomWeightsOption = False,
    dtype: DtypeOption = None,
    generate: GenerateOption = 0,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a whole model with and without a cast, on its own example inputs."""
    session = Session(project=project, as_json=as_json)
    try:
        request = measure_request(
            model,
            cast,
            inputs or (),
            device=device,
            random_weights=random_weights,
            dtype=dtype,
            generate_tokens=generate,
        )
    except KernelForgeError as error:
        session.fail(error)

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
