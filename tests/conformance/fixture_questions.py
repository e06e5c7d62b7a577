"""What a server did by itself before 2026-07-28: log, ask a model, ask a person."""

from typing import Any

import anyio
from fixture_contents import STEP_SECONDS
from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    EmptyResult,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)

OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    "verified": {"type": "boolean", "default": True},
}
CHOICES = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


def add_questions(server: MCPServer[Any]) -> None:
    """Register every tool and handler of this file."""
    for tool in (
        test_tool_with_logging, test_logging_tool, test_sampling, test_elicitation,
        test_elicitation_sep1034_defaults, test_elicitation_sep1330_enums,
        test_missing_capability, test_reconnection,
    ):  # fmt: skip
        server.tool(structured_output=False)(tool)
    # MCPServer has no door of its own for what the newest protocol dropped.
    below = server._lowlevel_server
    below.add_request_handler("logging/setLevel", SetLevelRequestParams, accepted)
    below.add_request_handler("resources/subscribe", SubscribeRequestParams, accepted)
    below.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, accepted)


async def accepted(_context: object, _params: object) -> EmptyResult:
    """The answer to a request that needs no more than that."""
    return EmptyResult()


async def test_tool_with_logging(ctx: Context) -> str:
    """Logs three times."""
    for said in ("started", "processing data", "completed"):
        await ctx.info(f"Tool execution {said}")
        await anyio.sleep(STEP_SECONDS)
    return "done"


async def test_logging_tool(ctx: Context) -> str:
    """Logs once, which a client of 2026-07-28 sees only if it asked to."""
    await ctx.info("A line of the log")
    return "done"


async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model."""
    asked = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    answer = await ctx.session.create_message(
        [asked], max_tokens=100, related_request_id=ctx.request_id
    )
    return f"LLM response: {answer.content.text}"


async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the person in front of the client."""
    fields = {"username": {"type": "string"}, "email": {"type": "string"}}
    return await _asked(ctx, message, fields, required=list(fields))


async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with a default for every kind of field."""
    return await _asked(ctx, "Please review", DEFAULTS)


async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with every kind of choice."""
    return await _asked(ctx, "Please choose", CHOICES)


async def _asked(ctx: Context, message: str, fields: Any, required: list[str] | None = None) -> str:
    schema = {"type": "object", "properties": fields, "required": required or []}
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


async def test_missing_capability(ctx: Context) -> str:
    """Needs a client that can sample."""
    if ctx.client_capabilities and ctx.client_capabilities.sampling:
        return "the client can sample"
    raise MCPError(
        code=MISSING_REQUIRED_CLIENT_CAPABILITY,
        message="The client did not declare sampling",
        data={"requiredCapabilities": ClientCapabilities(sampling={}).model_dump(
            by_alias=True, mode="json", exclude_none=True
        )},
    )  # fmt: skip


async def test_reconnection(ctx: Context) -> str:
    """Closes its stream where the transport can take it up again, then answers."""
    await ctx.close_sse_stream()
    await anyio.sleep(STEP_SECONDS)
    return "answered"
