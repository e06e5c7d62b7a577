"""The one place where failures become the text of a tool error, always with what to do next."""

from collections.abc import Callable

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kernelforge_engine.errors import KernelForgeError

SHOWN = 60
MAX_CHARS, MAX_STEP = 2000, 500
NEXT = "Next:"
WANTED = {"tuple_type": "it should be a list", "string_type": "it should be a text"}


def tool_error(
    tool: str, accepted: list[str], raised: ToolError, redact: Callable[[str], str]
) -> ToolError:
    """What the agent reads when a call of `tool`, which takes `accepted`, failed with `raised`."""
    error = _worded(tool, accepted, raised)
    return type(error)(_short(redact(str(error))))


def _short(text: str) -> str:
    """A text in the length that every client shows, its next step included."""
    if len(text) <= MAX_CHARS:
        return text
    what, mark, step = text.rpartition(NEXT)
    step = f" [...] {mark}{step[:MAX_STEP]}"
    return f"{what[: MAX_CHARS - len(step)]}{step}"


def _worded(tool: str, accepted: list[str], raised: ToolError) -> ToolError:
    cause = raised.__cause__
    if isinstance(cause, KernelForgeError):
        return ToolError(str(cause))
    if isinstance(cause, ValidationError):
        return ToolError(_refusal(tool, accepted, cause))
    if isinstance(raised, UnexpectedToolError):
        return UnexpectedToolError(
            f"{tool} failed inside Kernel Forge; the server's log has the details. "
            "Next: call get_status(), then repeat the call once."
        )
    return ToolError(str(cause or raised))


def _refusal(tool: str, accepted: list[str], error: ValidationError) -> str:
    lines = [_line(tool, detail) for detail in error.errors(include_url=False)]
    takes = f"It takes {', '.join(accepted)}." if accepted else "It takes no arguments."
    return "\n".join([*lines, f"{takes} Next: correct this and call {tool} again."])


def _line(tool: str, detail: ErrorDetails) -> str:
    field = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"{tool} has no argument `{field}`."
    if detail["type"] == "missing":
        return f"`{field}` is missing."
    shown = repr(detail["input"])
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
    return f"`{field}` = {shown} is not accepted: {WANTED.get(detail['type'], detail['msg'])}."
