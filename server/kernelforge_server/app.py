"""The MCP server: the tools over one engine that lives as long as the process."""

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp.server import MCPServer

from kernelforge_engine import __version__
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Settings
from kernelforge_tools import guide
from kernelforge_tools.registry import tools


def build_server(settings: Settings) -> MCPServer[Engine]:
    """The server of one project."""

    @asynccontextmanager
    async def engine(_: MCPServer[Engine]) -> AsyncIterator[Engine]:
        # The transport holds its own duplicate of the descriptor; what any library still writes to
        # sys.stdout would be flushed into the protocol when the process ends.
        sys.stdout = sys.stderr
        async with Engine.open(settings) as opened:
            yield opened

    return MCPServer(
        "kernelforge",
        title="Kernel Forge",
        instructions=guide.LOOP.strip(),
        version=__version__,
        tools=tools(),
        lifespan=engine,
    )


def serve(settings: Settings) -> None:
    """Serve over standard input and output until the client goes away."""
    # Before the SDK configures logging: it would draw boxed tracebacks into the client's log.
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    server = build_server(settings)
    anyio.run(server.run_stdio_async, backend_options={"use_uvloop": sys.platform != "win32"})
