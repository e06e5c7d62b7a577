"""`kernelforge export`: pack the winners."""

from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CastSummary
from kernelforge_server.cli.options import JsonOption, ProjectOption
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import cast_table
from kernelforge_tools.entries import absolute


def export(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="X.cast")],
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A node to pack. Default: the fastest of every variant."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the nodes that are faster than eager into a cast."""
    session = Session(project=project, as_json=as_json)

    async def work(engine: Engine) -> CastSummary:
        with session.progress("export"):
            return await engine.export(
                absolute(output), node_ids=tuple(node or ()), overwrite=overwrite
            )

    cast = session.run(work)
    if as_json:
        session.emit(codec.dump(cast))
        return
    session.console.print(cast_table(cast))
    session.console.print(f"{cast.path} ({cast.bytes} bytes). To use it:\n\n{cast.load}")
