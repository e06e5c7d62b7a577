"""`kernelforge library`: the user's own accepted kernels, which other projects start from."""

from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.cast.manifest import read
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import NoLibrary
from kernelforge_engine.keeping import of_cast
from kernelforge_engine.library.accepted import Accepted
from kernelforge_engine.library.folder import SHOWN, LibraryFolder
from kernelforge_server import settings
from kernelforge_server.cli.cast_options import TrustedOption, existing, performed, trusted_keys
from kernelforge_server.cli.library_sheet import described, document, library_sheet
from kernelforge_server.cli.options import JsonOption, ProjectOption
from kernelforge_server.cli.plain import PlainCommand, PlainGroup
from kernelforge_server.cli.session import Session
from kernelforge_tools.wording import counted

CAST = ".cast"

library = typer.Typer(
    cls=PlainGroup,
    no_args_is_help=True,
    help="Kernels that you accepted, from which searches in other projects start.",
)
IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A kernel of the library, or how its id begins.")
]


@library.command("list", cls=PlainCommand)
def listed(
    operator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Only those of one operator, as aten::relu.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what the library holds, by operator, and name every file of it that is damaged."""
    session = Session(project=None, as_json=as_json)
    found = performed(session, lambda: _folder().all())
    kernels = [k for k in found.kernels if operator in (None, k.call.name, k.call.operator)]
    if as_json:
        damaged = [{"path": str(d.path), "why": d.why} for d in found.damaged]
        session.emit({"kernels": [document(k) for k in kernels], "damaged": damaged})
        return
    if kernels:
        session.show(library_sheet(kernels))
    session.show(f"{counted(len(kernels), 'kernel')} in {performed(session, _path)}.")
    for one in found.damaged:
        session.show(f"Left out: {one.path}: {one.why}.", style="yellow")


@library.command(cls=PlainCommand)
def show(kernel_id: IdArgument, as_json: JsonOption = False) -> None:
    """Show one kernel: where it comes from, what was found there, and its source."""
    session = Session(project=None, as_json=as_json)
    kernel = performed(session, lambda: _folder().find(kernel_id))
    if as_json:
        session.emit({"id": kernel.id, **codec.dump(kernel)})
        return
    for line in described(kernel):
        session.show(line)


@library.command(cls=PlainCommand)
def add(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NODE|X.cast", help="A node that is faster than eager, or a cast with some."
        ),
    ],
    key: TrustedOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a node, or every kernel of a cast. What is exported is added by itself."""
    session = Session(project=project, as_json=as_json)
    if what.endswith(CAST):
        added = performed(session, lambda: _added_from(Path(what), key))
    else:

        async def work(engine: Engine) -> Accepted:
            return await engine.keeper.add(what)

        added = (session.run(work),)
    if as_json:
        session.emit({"added": [document(kernel) for kernel in added]})
        return
    for kernel in added:
        session.show(f"{kernel.node_id} is in the library as {kernel.id[:SHOWN]}.")


@library.command(cls=PlainCommand)
def remove(kernel_id: IdArgument, as_json: JsonOption = False) -> None:
    """Take one kernel, or a damaged file, out of the library."""
    session = Session(project=None, as_json=as_json)
    removed = performed(session, lambda: _folder().remove(kernel_id))
    if as_json:
        session.emit({"removed": removed})
    else:
        session.show(f"{removed[:SHOWN]} is removed.")


def _path() -> Path:
    """Where the library is.

    Raises:
        NoLibrary: it is switched off.
    """
    path = settings.library()
    if path is None:
        raise NoLibrary
    return path


def _folder() -> LibraryFolder:
    return LibraryFolder(_path())


def _added_from(path: Path, key: list[str] | None) -> tuple[Accepted, ...]:
    """Add the kernels of a cast.

    Raises:
        NoLibrary, LibraryFull, LibraryUnusable
        FileMissing, CastRejected, CastUntrusted, KeyUnusable, SigningMissing
        NothingToKeep: it holds no kernel of its own.
    """
    folder, found = _folder(), of_cast(read(existing(path), trusted_keys(key)))
    for kernel in found:
        folder.add(kernel)
    return found
