"""`kernelforge cast`: look into packages."""

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CastSummary
from kernelforge_server.cli.options import CastArgument, JsonOption, ProjectOption
from kernelforge_server.cli.plain import PlainCommand, PlainGroup
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import cast_table, load_text
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
def verify(path: CastArgument, project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Check a cast's structure and every hash in it."""
    session = Session(project=project, as_json=as_json)
    found = _read(session, path)
    if as_json:
        session.emit({"path": found.path, "valid": True, "sha256": found.sha256})
    else:
        session.show(f"{found.path} is intact: sha256 {found.sha256}.")


def _targets(found: CastSummary) -> str:
    return ", ".join(found.archs) or "any CPU"


def _read(session: Session, path: CastArgument) -> CastSummary:
    async def work(engine: Engine) -> CastSummary:
        return await engine.inspect_cast(absolute(path))

    return session.run(work)
