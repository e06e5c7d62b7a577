"""A tool of the SDK that refuses unknown arguments, words its errors and answers compactly."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, ConfigDict

from kernelforge_engine.engine import Engine
from kernelforge_tools import bounds
from kernelforge_tools.answer import Answer, plain, schema
from kernelforge_tools.failures import tool_error


class ForgeTool(Tool):
    """One tool. The SDK alone would drop a misspelled argument without a word."""

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[Any, Any],
        convert_result: bool = False,
    ) -> Any:
        """The answer to a call, as the wire carries it when `convert_result` is set.

        Raises:
            ToolError: with a text for the agent.
        """
        engine: Engine = context.request_context.lifespan_context
        try:
            bounds.check(self.name, arguments)
            answer = await super().run(arguments, context)
        except ToolError as raised:
            accepted = list(self.fn_metadata.arg_model.model_fields)
            error = tool_error(self.name, accepted, raised, engine.redact)
            raise error from raised.__cause__
        return _result(answer) if convert_result else answer


def forge_tool(
    function: Callable[..., Awaitable[Answer[Any]]],
    *,
    read_only: bool,
    destructive: bool = False,
    idempotent: bool = False,
) -> Tool:
    """The tool a function describes: its name, its docstring and its annotated arguments."""
    tool = ForgeTool.from_function(
        function,
        annotations=ToolAnnotations(
            read_only_hint=read_only,
            destructive_hint=destructive,
            idempotent_hint=idempotent,
            open_world_hint=False,
        ),
        description=inspect.getdoc(function),
        structured_output=True,
    )
    strict = _strict(tool.fn_metadata.arg_model)
    tool.fn_metadata.arg_model = strict
    tool.parameters = _untitled(strict.model_json_schema(by_alias=True))
    tool.fn_metadata.output_schema = schema(_data(function))
    return tool


def _data(function: Callable[..., Awaitable[Answer[Any]]]) -> type[BaseModel] | None:
    """The view in a function's `Answer[View]`, or None where it may be any."""
    answer: type[Answer[Any]] = get_type_hints(function)["return"]
    (view,) = answer.__pydantic_generic_metadata__["args"]
    return view if isinstance(view, type) and issubclass(view, BaseModel) else None


def _untitled(part: Any) -> Any:
    """A schema without its generated titles, which only repeat the names, and without defaults that
    say no more than that nothing was given."""
    if isinstance(part, dict):
        named = {key: _untitled(value) for key, value in part.items()}
        return {key: value for key, value in named.items() if not _says_nothing(key, value)}
    return [_untitled(entry) for entry in part] if isinstance(part, list) else part


def _says_nothing(key: str, value: Any) -> bool:
    if key == "title":
        return isinstance(value, str)
    return key == "default" and value in (None, [], "")


def _strict(model: type[ArgModelBase]) -> type[ArgModelBase]:
    class Strict(model):  # type: ignore[misc, valid-type]
        model_config = ConfigDict(extra="forbid", title=model.__name__)

    return Strict


def _result(answer: Answer[Any]) -> CallToolResult:
    """An answer as the wire carries it: some clients read only the text, some only the object."""
    content = bounds.bounded(plain(answer))
    text = TextContent(type="text", text=bounds.compact(content))
    return CallToolResult(content=[text], structured_content=content)
