"""Models of Anthropic, through its SDK and the stateless Messages API."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import httpx2

from kernelforge_agent.conversation import Heard, Json, Reply, Stop, Talk, ToolCall, ToolSpec, Turn
from kernelforge_agent.errors import (
    AgentError,
    ExtraMissing,
    KeyMissing,
    KeyRefused,
    ModelFailed,
    Overloaded,
    StreamCut,
)
from kernelforge_agent.patience import retry_after

if TYPE_CHECKING:
    from anthropic.types import Message

MAX_TOKENS = 32_000
KEY = "ANTHROPIC_API_KEY"
# What each kind of block must hold when it is sent back; the SDK adds fields of its own.
SENT_BACK = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name", "input"),
}
STOPS: dict[str | None, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "declined",
}
KINDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
PASSING = {"overloaded_error", "rate_limit_error", "api_error", "timeout_error"}


class AnthropicModel:
    """A model behind `/v1/messages`. Every request carries the whole conversation, whose beginning
    the server caches; nothing is kept there from one request to the next."""

    def __init__(
        self, name: str, *, base_url: str | None = None, effort: str | None = None
    ) -> None:
        try:
            import anthropic
        except ImportError as missing:
            raise ExtraMissing from missing
        self.name = name
        self._errors = anthropic
        # The SDK finds the key where its users keep it; waiting and trying again is ours to do,
        # within the budget.
        self._client = anthropic.AsyncAnthropic(base_url=base_url, max_retries=0)
        self._options: Json = {"output_config": {"effort": effort}} if effort else {}
        client = self._client
        if not (client.api_key or client.auth_token or client.credentials):
            raise KeyMissing(model=name, variable=KEY)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys."""
        return tuple(s for s in (self._client.api_key, self._client.auth_token) if s)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def turn(self, system: str, talk: Talk, tools: Sequence[ToolSpec], heard: Heard) -> Turn:
        """The next turn.

        Raises:
            KeyRefused, Overloaded, StreamCut, ModelFailed
        """
        request: Json = {
            "model": self.name,
            "max_tokens": MAX_TOKENS,
            "system": system,
            "messages": [_message(said) for said in talk],
            "tools": [
                {"name": t.name, "description": t.description, "input_schema": t.schema}
                for t in tools
            ],
            "cache_control": {"type": "ephemeral"},
            **self._options,
        }
        begun = ended = False
        try:
            async with self._client.messages.stream(**request) as stream:
                async for event in stream:
                    begun = True
                    if event.type == "text":
                        heard(event.text)
                    ended = ended or event.type == "message_stop"
                if not ended:
                    raise StreamCut(model=self.name, why="its end is missing")
                return _turn(stream.current_message_snapshot, stream.request_id)
        except (self._errors.APIError, httpx2.HTTPError) as error:
            raise self._worded(error, begun=begun) from error

    def _worded(self, error: Exception, *, begun: bool) -> AgentError:
        """The error in our words; one that passes by itself is told from one that does not."""
        if not isinstance(error, self._errors.APIStatusError):
            kind = StreamCut if begun else Overloaded
            return kind(model=self.name, why=str(error) or type(error).__name__)
        why = f"{error.api_message or error.message} (HTTP {error.status_code})"
        if error.status_code in (401, 403):
            return KeyRefused(model=self.name, why=why, variable=KEY)
        if error.type in PASSING or error.status_code == 429 or error.status_code >= 500:
            after = retry_after(error.response.headers)
            return Overloaded(model=self.name, why=why, retry_after=after)
        return ModelFailed(model=self.name, why=why)


def _message(said: Turn | Reply) -> Json:
    if isinstance(said, Turn):
        return {"role": "assistant", "content": said.raw}
    results: list[Json] = [
        {"type": "tool_result", "tool_use_id": o.id, "content": o.text, "is_error": o.failed}
        for o in said.outcomes
    ]
    words = [{"type": "text", "text": said.text}] if said.text else []
    return {"role": "user", "content": [*results, *words]}


def _turn(message: "Message", request_id: str | None) -> Turn:
    stop = STOPS.get(message.stop_reason)
    blocks = list(message.content)
    if stop:  # a call in an answer that was cut off has no arguments to trust
        blocks = [block for block in blocks if block.type != "tool_use"]
    calls = [block for block in blocks if block.type == "tool_use"]
    usage = {kind: getattr(message.usage, field) or 0 for kind, field in KINDS.items()}
    return Turn(
        text="".join(block.text for block in blocks if block.type == "text"),
        calls=tuple(ToolCall(id=c.id, tool=c.name, arguments=_arguments(c.input)) for c in calls),
        stop=stop or ("calls" if calls else "done"),
        tokens=usage,
        raw=[_sent_back(block) for block in blocks] or [{"type": "text", "text": "(cut off)"}],
        request_id=request_id,
    )


def _sent_back(block: Any) -> Json:
    if block.type not in SENT_BACK:
        return dict(block.model_dump(mode="json", exclude_none=True))
    return {"type": block.type} | {name: getattr(block, name) for name in SENT_BACK[block.type]}


def _arguments(given: object) -> Json | None:
    return given if isinstance(given, dict) else None
