"""Our own server over HTTP, as `kernelforge serve` starts it, with what the official conformance
suite calls by name; `--bare` leaves ours out and serves the same on the SDK's own server."""

import sys
import warnings
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import typer
from fixture_contents import add_contents
from fixture_questions import add_questions
from fixture_rounds import add_rounds
from mcp import MCPDeprecationWarning
from mcp.server import MCPServer
from mcp.types import Completion

from kernelforge_engine.engine import Engine
from kernelforge_server import settings
from kernelforge_server.app import build_server
from kernelforge_server.over_http import door, serve_http


def add_fixtures(server: MCPServer[Any]) -> MCPServer[Any]:
    """The same server with everything that the suite looks for."""
    add_contents(server)
    add_questions(server)
    add_rounds(server)
    return server


def ours(engine: AbstractAsyncContextManager[Engine]) -> MCPServer[Any]:
    """Our server with the fixtures."""
    return add_fixtures(build_server(engine))


def bare(_engine: AbstractAsyncContextManager[Engine]) -> MCPServer[Any]:
    """The SDK's server with nothing but the fixtures."""
    server: MCPServer[Any] = MCPServer("bare", version="1")

    @server.completion()
    async def complete(_reference: object, _argument: object, _context: object) -> Completion:
        return Completion(values=[])

    return add_fixtures(server)


def main(project: Path, only_sdk: bool = typer.Option(False, "--bare")) -> None:
    """Serve on any free port of this machine; the address goes to standard error."""
    # Logging and sampling are deprecated, and the older protocol's scenarios ask for both.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    serve_http(
        settings.resolve(project),
        door("127.0.0.1", 0, (), ""),
        lambda url: print(f"Serving {url}", file=sys.stderr, flush=True),
        build=bare if only_sdk else ours,
    )


if __name__ == "__main__":
    typer.run(main)
