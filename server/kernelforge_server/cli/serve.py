"""`kernelforge serve`: the tool server over HTTP."""

from typing import Annotated

import typer

from kernelforge_engine.errors import KernelForgeError
from kernelforge_server import settings
from kernelforge_server.cli.options import ProjectOption
from kernelforge_server.cli.session import INTERRUPTED, Session

PORT = 8765


def serve(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")
    ] = PORT,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A name by which clients call this machine; may be repeated."
        ),
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Serve the tools to MCP clients over HTTP, on this machine unless told otherwise.

    With KERNELFORGE_TOKEN set, only requests that carry it as a bearer token are answered; any
    address but this machine's own needs one. Whoever may call the tools can run code here.
    """
    # The SDK takes longer to import than all the rest, and no other command needs it.
    from kernelforge_server.over_http import door, serve_http

    def ready(url: str) -> None:
        typer.echo(f"Serving {url}", err=True)

    try:
        opened = door(host, port, allowed_host or (), settings.token())
        serve_http(settings.resolve(project), opened, ready)
    except KernelForgeError as error:
        Session(project=project, as_json=False).fail(error)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
