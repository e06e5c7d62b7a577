"""The texts for models: Markdown with named fields, all of which must be filled."""

from importlib.resources import files
from string import Template

from kernelforge_agent.conversation import Json, ToolCall, ToolOutcome, ToolSpec

FOLDER = files("kernelforge_agent") / "prompts"
TOPICS = ("memory_bound", "launch_bound", "reduction", "layout", "tensor_core")

READ_GUIDANCE = ToolSpec(
    name="read_guidance",
    description="What helps against one bottleneck, in half a page. Ask when you know which it is.",
    schema={
        "type": "object",
        "properties": {"bottleneck": {"type": "string", "enum": list(TOPICS)}},
        "required": ["bottleneck"],
        "additionalProperties": False,
    },
)


def prompt(name: str, **fields: object) -> str:
    """A text with its fields filled."""
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    return Template(text).substitute(fields).strip()


def guidance(call: ToolCall) -> ToolOutcome:
    """What the agent itself answers to `read_guidance`."""
    wanted = (call.arguments or {}).get("bottleneck")
    if wanted not in TOPICS:
        error = f"There is no guidance on {wanted!r}. Next: ask for one of {', '.join(TOPICS)}."
        return ToolOutcome(id=call.id, tool=call.tool, error=error)
    text = (FOLDER / "guidance" / f"{wanted}.md").read_text("utf-8")
    answer: Json = {"status": "ok", "summary": text}
    return ToolOutcome(id=call.id, tool=call.tool, answer=answer)
