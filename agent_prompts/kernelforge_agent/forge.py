"""The tool server, as the agent reaches it: over MCP and by nothing else."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any, cast

import httpx2
from mcp import MCPError, StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, Implementation, RequestParamsMeta, TextContent

from kernelforge_agent.conversation import Json, ToolCall, ToolOutcome, ToolSpec
from kernelforge_agent.errors import ServerFailed

WAIT = "wait_job"
STATUS = "get_status"
USAGE = "record_usage"
CALL_KEY = "io.github.kernelforge/key"  # in _meta: a call that is made again comes to the same
WAIT_S = 60
SILENCE_S = 600.0
CONNECT_S = 30.0
LOST = (MCPError, OSError, httpx2.HTTPError)

Progress = Callable[[str], None]


class Forge:
    """A connected server.

    Attributes:
        tools: all that it has, in an order that does not change.
        instructions: what it says about itself.
    """

    def __init__(self, client: Client, tools: tuple[ToolSpec, ...]) -> None:
        self._client = client
        self.tools = tools
        self.instructions = client.instructions or ""

    def has(self, tool: str) -> bool:
        """Whether the server has a tool of that name."""
        return any(spec.name == tool for spec in self.tools)

    async def call(self, call: ToolCall, heard: Progress, key: str | None = None) -> ToolOutcome:
        """What comes of a call; work that goes on as a job is waited for. One that was made before
        with its `key`, by whichever process, comes to what it came to then.

        Raises:
            ServerFailed
        """
        if call.arguments is None:
            error = f"The arguments of {call.tool} are no JSON object. Next: write them again."
            return ToolOutcome(id=call.id, tool=call.tool, error=error)
        meta: dict[str, Any] = {} if key is None else {CALL_KEY: key}
        result = await self._result(call.tool, call.arguments, heard, meta)
        while job := _running(result):
            waiting = {"job_id": job, "wait_s": WAIT_S}
            result = await self._result(WAIT, waiting, heard, meta)
        if result.is_error or result.structured_content is None:
            return ToolOutcome(id=call.id, tool=call.tool, error=_text(result))
        return ToolOutcome(id=call.id, tool=call.tool, answer=result.structured_content)

    async def status(self) -> ToolOutcome:
        """What the server works on and with.

        Raises:
            ServerFailed
        """
        return await self.call(ToolCall(id=STATUS, tool=STATUS, arguments={}), lambda _: None)

    async def _result(
        self, tool: str, arguments: Json, heard: Progress, meta: dict[str, Any]
    ) -> CallToolResult:
        async def told(
            progress: float,  # noqa: ARG001  the names are the SDK's
            total: float | None,  # noqa: ARG001
            message: str | None,
        ) -> None:
            heard(message or tool)

        try:
            return await self._client.call_tool(
                tool,
                arguments,
                progress_callback=told,
                meta=cast(RequestParamsMeta, meta),
            )
        except LOST as error:
            step = "see what it said last, then `kernelforge agent resume`"
            raise ServerFailed(why=_why(error), step=step) from error


@asynccontextmanager
async def connected(
    server: StdioServerParameters | str, token: str, author: str
) -> AsyncIterator[Forge]:
    """A child server, or the one at a URL, until the context ends.

    Raises:
        ServerFailed: there is none, or it does not let us in.
    """
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(await _client(server, token, author, stack))
            listed = (await client.list_tools()).tools
        except (*LOST, ExceptionGroup) as error:
            place = server if isinstance(server, str) else server.command
            step = "start it with `kernelforge serve`, and set KERNELFORGE_TOKEN if it asks for one"
            raise ServerFailed(why=f"{place}: {_why(error)}", step=step) from error
        specs = (
            ToolSpec(name=t.name, description=t.description or "", schema=t.input_schema)
            for t in listed
        )
        yield Forge(client, tuple(sorted(specs, key=lambda spec: spec.name)))


async def _client(
    server: StdioServerParameters | str, token: str, author: str, stack: AsyncExitStack
) -> Client:
    place: Any = server
    if isinstance(server, str):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S)
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=timeout))
        place = streamable_http_client(server, http_client=http)
    info = Implementation(name=author, version=version("kernelforge-mcp"))
    return Client(place, client_info=info)


def _running(result: CallToolResult) -> str | None:
    answer = result.structured_content or {}
    return answer.get("job_id") if answer.get("status") == "running" else None


def _text(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def _why(error: BaseException) -> str:
    """The innermost reason, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split()) or type(error).__name__
