"""`kernelforge export`: pack the winners."""

from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.exchanges import CastSummary
from kernelforge_server.cli.options import JsonOption, ProjectOption
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import cast_table, load_text
from kernelforge_tools.lookups import cast_path


def export(
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
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the nodes that are faster than eager into a cast."""
    session = Session(project=project, as_json=as_json)
    try:
        target = cast_path(output, overwrite=overwrite, replacing="--overwrite")
    except KernelForgeError as error:
        session.fail(error)

    async def work(engine: Engine) -> CastSummary:
        with session.progress("export"):
            return await engine.export(target, node_ids=tuple(node or ()), overwrite=overwrite)

    cast = session.run(work)
    if as_json:
        session.emit(codec.dump(cast))
        return
    session.show(cast_table(cast))
    session.show(f"{cast.path} ({cast.bytes} bytes). To use it:\n\n{load_text(cast)}")
