"""`kernelforge install`: tell an MCP client of this server."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine.errors import KernelForgeError
from kernelforge_server import clients
from kernelforge_server.cli.options import JsonOption
from kernelforge_server.cli.session import Session
from kernelforge_server.clients import CLIENTS, by_hand, merged, server_command, write

Known = StrEnum("Known", {name: name for name in CLIENTS})  # type: ignore[misc]


class Scope(StrEnum):
    """Whose configuration is meant."""

    PROJECT = "project"
    USER = "user"


def install(
    client: Annotated[Known, typer.Argument(help="The client.", show_default=False)],
    scope: Annotated[
        Scope | None,
        typer.Option(help="The folder's configuration or yours. Default: the folder's, if any."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print what would be written, and write nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Add this server to the configuration of an MCP client; what else is in there stays."""
    session = Session(project=None, as_json=as_json)
    try:
        path, said = _installed(client.value, scope, show=show)
    except KernelForgeError as error:
        session.fail(error)
    if as_json:
        session.emit({"client": client.value, "path": path and str(path), "text": said})
    else:
        session.show(said)


def _installed(name: str, scope: Scope | None, *, show: bool) -> tuple[Path | None, str]:
    """The file that was written, if one was, and what is to be said."""
    client, command = CLIENTS[name], server_command()
    chosen: clients.Scope = scope.value if scope else next(iter(client.files))
    if chosen not in client.files:
        return None, f"{client.title} keeps that itself. Run:\n\n{by_hand(client, command)}"
    path = (Path.home() if chosen == "user" else Path.cwd()) / client.files[chosen]
    text = merged(path, client, command)
    if show:
        return None, f"{path}:\n\n{text}"
    write(path, text)
    return (
        path,
        f"{client.title} finds the server in {path}. Start it anew, and ask it for get_status.",
    )
