"""What the official suite asks for by name: contents of every kind, resources and prompts."""

import base64
import io
import json
import wave
from typing import Annotated, Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Audio, Context, Image, UserMessage
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import EmbeddedResource, ImageContent, TextResourceContents
from PIL import Image as Picture
from pydantic import Field

STEP_SECONDS = 0.05  # apart enough for a client to see three messages instead of one
DIALECT = "https://json-schema.org/draft/2020-12/schema"
CONTACT: dict[str, Any] = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def picture() -> bytes:
    """A PNG of one red pixel."""
    held = io.BytesIO()
    Picture.new("RGB", (1, 1), "red").save(held, "PNG")
    return held.getvalue()


def sound() -> bytes:
    """A WAV of ten silent samples."""
    held = io.BytesIO()
    with wave.open(held, "wb") as track:
        track.setnchannels(1)
        track.setsampwidth(2)
        track.setframerate(8000)
        track.writeframes(bytes(20))
    return held.getvalue()


def embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    """A text resource as a content block."""
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=text)
    )


def add_contents(server: MCPServer[Any]) -> None:
    """Register every tool, resource and prompt of this file."""
    for tool in (
        test_simple_text, test_image_content, test_audio_content, test_embedded_resource,
        test_multiple_content_types, test_tool_with_progress, test_error_handling,
        test_x_mcp_header, test_trigger_tool_change, test_trigger_prompt_change,
    ):  # fmt: skip
        server.tool(structured_output=False)(tool)
    server._tool_manager._tools["json_schema_2020_12_tool"] = _contact_tool()
    server.resource("test://static-text", mime_type="text/plain")(static_text)
    server.resource("test://static-binary", mime_type="image/png")(static_binary)
    server.resource("test://watched-resource", mime_type="text/plain")(watched)
    server.resource("test://template/{id}/data", mime_type="application/json")(data_of)
    for prompt in (
        test_simple_prompt, test_prompt_with_arguments, test_prompt_with_embedded_resource,
        test_prompt_with_image,
    ):  # fmt: skip
        server.prompt()(prompt)


def _contact_tool() -> Tool:
    """A tool whose schema no function signature could give, so it is put in as it is."""

    def json_schema_2020_12_tool() -> str:
        """A tool whose schema uses words of JSON Schema 2020-12."""
        return "accepted"

    return Tool.from_function(json_schema_2020_12_tool).model_copy(update={"parameters": CONTACT})


def test_simple_text() -> str:
    """One text."""
    return "This is a simple text response for testing."


def test_image_content() -> Image:
    """One picture."""
    return Image(data=picture(), format="png")


def test_audio_content() -> Audio:
    """One sound."""
    return Audio(data=sound(), format="wav")


def test_embedded_resource() -> EmbeddedResource:
    """One embedded resource."""
    return embedded("test://embedded-resource", "text/plain", "An embedded resource.")


def test_multiple_content_types() -> list[Any]:
    """A text, a picture and an embedded resource."""
    data = json.dumps({"test": "data", "value": 123})
    return [
        "Multiple content types test:",
        Image(data=picture(), format="png"),
        embedded("test://mixed-content-resource", "application/json", data),
    ]


async def test_tool_with_progress(ctx: Context) -> str:
    """Reports its progress three times."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await anyio.sleep(STEP_SECONDS)
    return "done"


def test_error_handling() -> str:
    """Always fails."""
    raise ToolError("This tool intentionally returns an error for testing")


def test_x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    """Takes an argument that HTTP clients repeat in a header."""
    return region


async def test_trigger_tool_change(ctx: Context) -> str:
    """Says that the list of tools changed."""
    await ctx.notify_tools_changed()
    return "told"


async def test_trigger_prompt_change(ctx: Context) -> str:
    """Says that the list of prompts changed."""
    await ctx.notify_prompts_changed()
    return "told"


def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


def static_binary() -> bytes:
    """A picture."""
    return picture()


def watched() -> str:
    """What can be subscribed to."""
    return "Watched resource content"


def data_of(id: str) -> str:  # noqa: A002  the suite's own name
    """What belongs to an id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1={arg1!r}, arg2={arg2!r}"


def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803
    """A prompt that brings a resource."""
    return [
        UserMessage(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")),
        UserMessage("Please process the embedded resource above."),
    ]


def test_prompt_with_image() -> list[UserMessage]:
    """A prompt that brings a picture."""
    data = base64.b64encode(picture()).decode()
    return [
        UserMessage(ImageContent(type="image", data=data, mime_type="image/png")),
        UserMessage("Please analyze the image above."),
    ]
