"""`kernelforge measure`: a whole model with and without a cast."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.measurements import MODES, SECONDS, Measurement
from kernelforge_server.cli.cast_options import TrustedOption, trusted_keys
from kernelforge_server.cli.measurements import (
    kernel_table,
    measurement_document,
    measurement_lines,
    measurement_table,
)
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
from kernelforge_tools.entries import measure_request, mode_names
from kernelforge_tools.load import busy_now


def measure(  # noqa: PLR0913  an option is an argument
    model: ModelArgument,
    cast: Annotated[Path, typer.Option(metavar="X.cast", help="The cast to try.")],
    modes: Annotated[
        str,
        typer.Option(metavar="MODE,...", help=f"How the model is run, of {', '.join(MODES)}."),
    ] = "eager",
    attribution: Annotated[
        bool,
        typer.Option("--attribution", metavar="", help="Also time it without each kernel (eager)."),
    ] = False,
    seconds: Annotated[
        float,
        typer.Option(metavar="N", help="Timing ends after about so long; what is left is named."),
    ] = SECONDS,
    inputs: InputsOption = None,
    device: DeviceOption = "cpu",
    random_weights: RandomWeightsOption = False,
    dtype: DtypeOption = None,
    generate: GenerateOption = 0,
    key: TrustedOption = None,
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
            modes=mode_names(modes.split(",")),
            attribution=attribution,
            seconds=seconds,
            device=device,
            random_weights=random_weights,
            dtype=dtype,
            generate_tokens=generate,
        )
    except KernelForgeError as error:
        session.fail(error)

    trusted = trusted_keys(key)
    request = replace(request, trusted=tuple(map(str, trusted)) if trusted is not None else None)
    busy = busy_now() if device == "cpu" else None

    async def work(engine: Engine) -> Measurement:
        with session.progress("measure") as notice:
            return await engine.measure(request, notice)

    measured = session.run(work)
    if as_json:
        session.emit(measurement_document(measured))
    else:
        session.warn(busy)
        show_measurement(session, measured)
    if not measured.rows:
        raise typer.Exit(1)


def show_measurement(session: Session, measured: Measurement, style: str | None = None) -> None:
    """Print a measurement for people."""
    if measured.rows:
        session.show(measurement_table(measured))
    for line in measurement_lines(measured):
        session.show(line, style=style)
    if measured.kernels:
        session.show(kernel_table(measured.kernels))
