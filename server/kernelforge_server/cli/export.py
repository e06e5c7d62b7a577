"""`kernelforge export`: pack the winners."""

from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.exchanges import CastSummary
from kernelforge_engine.measurements import Check
from kernelforge_server.cli.measurements import whole_model_lines
from kernelforge_server.cli.options import JsonOption, ProjectOption
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import cast_table, load_text
from kernelforge_tools.lookups import cast_path
from kernelforge_tools.wording import kept_text


def export(  # noqa: PLR0913  an option is an argument
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="X.cast", help="Where to write it.")
    ],
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A node to pack. Default: the fastest of every variant."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", metavar="", help="Replace an existing file.")
    ] = False,
    measured: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            metavar="",
            help="Run the captured model, and leave out kernels that make it slower.",
        ),
    ] = True,
    keep_all: Annotated[
        bool,
        typer.Option(
            "--keep-all", metavar="", help="Keep kernels that make the model slower, and say so."
        ),
    ] = False,
    seconds: Annotated[
        float,
        typer.Option(metavar="N", help="Timing of the model ends after about so long."),
    ] = Check.seconds,
    no_samples: Annotated[
        bool,
        typer.Option(
            "--no-samples",
            metavar="",
            help="Leave out values of the model's tensors, and its code.",
        ),
    ] = False,
    library: Annotated[
        bool,
        typer.Option(
            "--library/--no-library",
            metavar="",
            help="Also keep them in your library, which offers them to other projects.",
        ),
    ] = True,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the nodes that are faster than eager into a cast."""
    session = Session(project=project, as_json=as_json)
    try:
        target = cast_path(output, overwrite=overwrite, replacing="--overwrite")
    except KernelForgeError as error:
        session.fail(error)
    check = Check(seconds=seconds, keep_all=keep_all) if measured else None

    async def work(engine: Engine) -> CastSummary:
        with session.progress("export") as notice:
            return await engine.export(
                target,
                node_ids=tuple(node or ()),
                overwrite=overwrite,
                samples=not no_samples,
                keep=library,
                check=check,
                notice=notice,
            )

    cast = session.run(work)
    if as_json:
        session.emit(codec.dump(cast))
        return
    session.show(cast_table(cast))
    show_whole_model(session, cast)
    if said := kept_text(cast.kept):
        session.show(said.lstrip())
    session.show(f"{cast.path} ({cast.bytes} bytes). To use it:\n\n{load_text(cast)}")


def show_whole_model(session: Session, cast: CastSummary) -> None:
    """Print what an export found about the whole model."""
    for line, style in whole_model_lines(cast):
        session.show(line, style=style)
