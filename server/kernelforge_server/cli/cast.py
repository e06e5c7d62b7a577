"""`kernelforge cast`: look into packages."""

from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CastSummary
from kernelforge_engine.rerun import Rerun
from kernelforge_server.cli.options import CastArgument, JsonOption, ProjectOption
from kernelforge_server.cli.plain import PlainCommand, PlainGroup
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import cast_table, load_text, rerun_table
from kernelforge_tools.entries import absolute

cast = typer.Typer(cls=PlainGroup, no_args_is_help=True, help="Look into a cast.")


@cast.command(cls=PlainCommand)
def inspect(path: CastArgument, project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Show what a cast holds and how to load it."""
    session = Session(project=project, as_json=as_json)
    found = _read(session, path)
    if as_json:
        session.emit(codec.dump(found))
        return
    session.show(
        f"{found.path}: {found.bytes} bytes, format {found.format_version}, made on "
        f"{found.device_name} with torch {found.torch_version} for {_targets(found)}."
    )
    session.show(cast_table(found))
    session.show(f"To use it:\n\n{load_text(found)}")


@cast.command(cls=PlainCommand)
def verify(
    path: CastArgument,
    rerun: Annotated[
        bool,
        typer.Option(
            "--rerun", metavar="", help="Also judge and time every kernel again on this machine."
        ),
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a cast's structure and every hash in it."""
    session = Session(project=project, as_json=as_json)
    found = _read(session, path)
    document: dict[str, object] = {"path": found.path, "valid": True, "sha256": found.sha256}
    if not as_json:
        session.show(f"{found.path} is intact: sha256 {found.sha256}.")
    rows = _rerun(session, path) if rerun else ()
    if as_json:
        session.emit({**document, "rerun": [_row(r) for r in rows]} if rerun else document)
    elif rerun:
        session.show(rerun_table(rows))
    if not all(row.holds for row in rows):
        raise typer.Exit(1)


def _rerun(session: Session, path: CastArgument) -> tuple[Rerun, ...]:
    async def work(engine: Engine) -> tuple[Rerun, ...]:
        with session.progress(path.name) as notice:
            return await engine.rerun_cast(absolute(path), notice)

    return session.run(work)


def _row(row: Rerun) -> dict[str, object]:
    return {**codec.dump(row), "holds": row.holds}


def _targets(found: CastSummary) -> str:
    return ", ".join(found.archs) or "any CPU"


def _read(session: Session, path: CastArgument) -> CastSummary:
    async def work(engine: Engine) -> CastSummary:
        return await engine.inspect_cast(absolute(path))

    return session.run(work)
