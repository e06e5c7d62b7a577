"""Calls of 2026-07-28 that need more from the client: they end with what is missing, and are made
again with it."""

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    InputResponses,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

Answer = str | InputRequiredResult


def add_rounds(server: MCPServer[Any]) -> None:
    """Register every tool and prompt of this file."""
    for name, tool in {
        "elicitation": by_a_person,
        "sampling": by_a_model,
        "list_roots": by_its_roots,
        "request_state": with_a_state,
        "multiple_inputs": by_everything,
        "multi_round": in_two_rounds,
        "tampered_state": with_a_state,
        "capabilities": by_what_it_can,
    }.items():
        named = f"test_input_required_result_{name}"
        server.tool(name=named, structured_output=False)(tool)
    server.tool(name="test_streaming_elicitation", structured_output=False)(by_a_person)
    server.prompt(name="test_input_required_result_prompt")(prompted)


def question(message: str, field: str, kind: str = "string") -> ElicitRequest:
    """One field that a person fills in."""
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text: str) -> CreateMessageRequest:
    """One message for the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    params = CreateMessageRequestParams(messages=[message], max_tokens=100)
    return CreateMessageRequest(method="sampling/createMessage", params=params)


def roots() -> ListRootsRequest:
    """The client's folders."""
    return ListRootsRequest(method="roots/list")


def given(ctx: Context) -> InputResponses:
    """What the client brought."""
    return ctx.input_responses or {}


def filled_in(ctx: Context, key: str) -> dict[str, Any] | None:
    """The fields of a form that a person accepted."""
    answer = given(ctx).get(key)
    return answer.content if isinstance(answer, ElicitResult) else None


async def by_a_person(ctx: Context) -> Answer:
    """Greets whoever says their name."""
    if fields := filled_in(ctx, "user_name"):
        return f"Hello, {fields['name']}!"
    asked = question("What is your name?", "name")
    return InputRequiredResult(input_requests={"user_name": asked})


async def by_a_model(ctx: Context) -> Answer:
    """Repeats what the client's model said."""
    answer = given(ctx).get("capital_question")
    if isinstance(answer, CreateMessageResult):
        return str(answer.content)
    asked = sampling("What is the capital of France?")
    return InputRequiredResult(input_requests={"capital_question": asked})


async def by_its_roots(ctx: Context) -> Answer:
    """Repeats the client's folders."""
    answer = given(ctx).get("client_roots")
    if isinstance(answer, ListRootsResult):
        return ", ".join(str(root.uri) for root in answer.roots)
    return InputRequiredResult(input_requests={"client_roots": roots()})


async def with_a_state(ctx: Context) -> Answer:
    """Finishes when its own state comes back with the confirmation."""
    if ctx.request_state == "asked" and filled_in(ctx, "confirm"):
        return "state-ok"
    asked = question("Please confirm", "ok", "boolean")
    return InputRequiredResult(input_requests={"confirm": asked}, request_state="asked")


async def by_everything(ctx: Context) -> Answer:
    """Needs a person, a model and folders at once."""
    asked = {
        "user_name": question("What is your name?", "name"),
        "greeting": sampling("Generate a greeting"),
        "client_roots": roots(),
    }
    if ctx.request_state == "asked" and set(asked) <= set(given(ctx)):
        return "complete"
    return InputRequiredResult(input_requests=asked, request_state="asked")


async def in_two_rounds(ctx: Context) -> Answer:
    """Asks twice, one after the other."""
    if ctx.request_state == "second" and (fields := filled_in(ctx, "step2")):
        return f"The color is {fields['color']}."
    if ctx.request_state == "first" and filled_in(ctx, "step1"):
        asked = question("Step 2: What is your favorite color?", "color")
        return InputRequiredResult(input_requests={"step2": asked}, request_state="second")
    asked = question("Step 1: What is your name?", "name")
    return InputRequiredResult(input_requests={"step1": asked}, request_state="first")


async def by_what_it_can(ctx: Context) -> Answer:
    """Asks only what the client said it can answer."""
    able = ctx.client_capabilities
    asked = {
        "user_name": able and able.elicitation and question("What is your name?", "name"),
        "greeting": able and able.sampling and sampling("Generate a greeting"),
        "client_roots": able and able.roots and roots(),
    }
    possible = {key: request for key, request in asked.items() if request}
    return InputRequiredResult(input_requests=possible) if possible else "nothing can be asked"


async def prompted(ctx: Context) -> Answer:
    """A prompt that needs a person first."""
    if fields := filled_in(ctx, "user_context"):
        return f"Use this context: {fields['context']}"
    asked = question("What context should the prompt use?", "context")
    return InputRequiredResult(input_requests={"user_context": asked})
