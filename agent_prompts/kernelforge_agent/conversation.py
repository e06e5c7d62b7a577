"""What is said between a model and the agent, in words of no provider."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Json = dict[str, Any]
Stop = Literal["calls", "done", "length", "declined"]


@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """A tool as a model is told of it."""

    name: str
    description: str
    schema: Json


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call that a model wants; without arguments, where what it wrote is no JSON object."""

    id: str
    tool: str
    arguments: Json | None


@dataclass(frozen=True, kw_only=True)
class ToolOutcome:
    """What came of a call: the server's answer, or an error; and what the agent adds to it."""

    id: str
    tool: str
    answer: Json | None = None
    error: str = ""
    brief: str = ""

    @property
    def failed(self) -> bool:
        return self.answer is None

    @property
    def status(self) -> str:
        return "error" if self.answer is None else str(self.answer.get("status", "ok"))

    @property
    def data(self) -> Json:
        """The facts of the answer, none where there are none."""
        found = (self.answer or {}).get("data")
        return found if isinstance(found, dict) else {}

    @property
    def text(self) -> str:
        """What the model reads."""
        if self.answer is None:
            said = self.error
        else:
            said = json.dumps(self.answer, separators=(",", ":"), ensure_ascii=False)
        return f"{said}\n\n{self.brief}" if self.brief else said


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One answer of a model.

    Attributes:
        tokens: how many of each kind it took, no token in two of them; None where nobody said.
        raw: the answer as its provider wants to see it again, None for a model that needs none.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = "done"
    tokens: dict[str, int] | None = field(default_factory=dict)
    raw: Any = None
    request_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the agent says to a model: outcomes of its calls, and words."""

    outcomes: tuple[ToolOutcome, ...] = ()
    text: str = ""


Talk = Sequence[Turn | Reply]
Heard = Callable[[str], None]


class Model(Protocol):
    """Whatever writes the next turn; `secrets` is what must not be written down."""

    name: str

    @property
    def secrets(self) -> tuple[str, ...]: ...

    async def aclose(self) -> None:
        """Let go of what it holds."""
        ...

    async def turn(self, system: str, talk: Talk, tools: Sequence[ToolSpec], heard: Heard) -> Turn:
        """The next turn; `heard` is given its text piece by piece.

        Raises:
            ModelFailed
        """
        ...
