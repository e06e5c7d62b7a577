"""The MCP server: the tools over one engine that lives as long as the process."""

import gc
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

import anyio
from mcp.server import MCPServer
from mcp.types import Completion, CompletionArgument

from kernelforge_engine import __version__
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Settings
from kernelforge_engine.redaction import Redactor
from kernelforge_tools import guide
from kernelforge_tools.completions import completed
from kernelforge_tools.prompts import add_prompts
from kernelforge_tools.registry import tools
from kernelforge_tools.resources import add_resources

SWITCH_SECONDS = 0.0001


def build_server(engine: AbstractAsyncContextManager[Engine]) -> MCPServer[Engine]:
    """The server of one project, over the engine that is entered when a client comes."""
    running: list[Engine] = []

    @asynccontextmanager
    async def lifespan(_: MCPServer[Engine]) -> AsyncIterator[Engine]:
        # The transport holds its own duplicate of the descriptor; what any library still writes to
        # sys.stdout would be flushed into the protocol when the process ends.
        sys.stdout = sys.stderr
        async with engine as opened:
            running[:] = [opened]
            yield opened

    async def complete(
        _reference: object, argument: CompletionArgument, _context: object
    ) -> Completion:
        # The SDK hands a completion no context of its own.
        return await completed(running[0], argument.name, argument.value)

    server = MCPServer(
        "kernelforge",
        title="Kernel Forge",
        instructions=guide.LOOP.strip(),
        version=__version__,
        tools=tools(),
        lifespan=lifespan,
    )
    add_resources(server, lambda: running[0])
    add_prompts(server)
    server.completion()(complete)  # type: ignore[no-untyped-call]
    return server


class _Redacting(logging.Formatter):
    """A formatter whose records, tracebacks included, hold no credential."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """The text of a record."""
        return self._redact(super().format(record))


def log_to_stderr(settings: Settings) -> None:
    """Configure logging before the SDK does: it would draw boxed tracebacks into a client's log."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Redacting(Redactor(settings.secrets, settings.home)))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("kernelforge_engine").setLevel(logging.INFO)


def prepare(settings: Settings) -> None:
    """Make this process one that serves."""
    log_to_stderr(settings)
    # What is imported by now stays: a collection that looked through it would make calls wait.
    gc.freeze()
    # SQLite gives the interpreter up for every row; while calls are answered it would get it back
    # only after the usual 5 ms, each time.
    sys.setswitchinterval(SWITCH_SECONDS)


def serve(settings: Settings) -> None:
    """Serve over standard input and output until the client goes away.

    Raises:
        StoreUnavailable, SchemaTooNew
    """
    prepare(settings)
    anyio.run(_serve, settings, backend_options={"use_uvloop": sys.platform != "win32"})


async def _serve(settings: Settings) -> None:
    # Opened out here: what the SDK's own tasks raise comes wrapped into exception groups.
    async with Engine.open(settings) as engine:
        await build_server(nullcontext(engine)).run_stdio_async()
