"""What every tool answers: one shape. The command line shows it too, which has no use for the SDK
and starts without it."""

import inspect
import json
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")


class View(BaseModel):
    """Something shown to an agent; absent facts are left out instead of being null."""

    model_config = ConfigDict(frozen=True)


class Answer(View, Generic[T]):
    """The result of a tool call."""

    status: str
    """`ok`, `running`, or what was found: a verdict status or a timing outcome."""
    summary: str
    """One sentence on what happened."""
    data: T | None = None
    next: list[str] = Field(default_factory=list)
    """Calls that make sense now."""
    job_id: str | None = None
    """Set while the work goes on: pass it to wait_job."""


def schema(data: type[BaseModel] | None) -> dict[str, Any]:
    """The shape of an answer. Its data is described by its names: agents read the answers, and a
    full schema of ten tools would cost them more than all the rest."""
    shown: dict[str, Any] = {"type": "object"}
    if data is not None:
        about = " ".join((inspect.getdoc(data) or "").split())
        shown["description"] = f"{about} Has {', '.join(data.model_fields)}."
    return {
        "type": "object",
        "properties": {
            "status": {"type": "string"},
            "summary": {"type": "string"},
            "data": shown,
            "next": {"type": "array"},
            "job_id": {"type": "string"},
        },
        "required": ["status", "summary"],
    }


def plain(answer: Answer[Any]) -> dict[str, Any]:
    """An answer as JSON values, without absent facts."""
    return answer.model_dump(mode="json", exclude_none=True)


def call(tool: str, **arguments: object) -> str:
    """A tool call as `next` shows it."""
    given = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
    return f"{tool}({given})"
