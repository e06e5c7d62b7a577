"""Any endpoint that speaks the chat completions of OpenAI: vLLM, Ollama, gateways."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx2

from kernelforge_agent.conversation import Heard, Json, Reply, Stop, Talk, ToolCall, ToolSpec, Turn
from kernelforge_agent.errors import AgentError, KeyRefused, ModelFailed, Overloaded, StreamCut
from kernelforge_agent.patience import retry_after

KEY = "OPENAI_API_KEY"
DONE = "[DONE]"
CONNECT_S = 30.0
SILENCE_S = 600.0  # a model that thinks says nothing for long
SHOWN_CHARS = 300
STOPS: dict[str | None, Stop] = {
    "length": "length",
    "content_filter": "declined",
}


class ChatModel:
    """A model behind `/chat/completions`."""

    def __init__(self, name: str, *, base_url: str, key: str) -> None:
        self.name = name
        self.secrets: tuple[str, ...] = (key,) if key else ()
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S)
        self._http = httpx2.AsyncClient(headers=headers, timeout=timeout)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def turn(self, system: str, talk: Talk, tools: Sequence[ToolSpec], heard: Heard) -> Turn:
        """The next turn.

        Raises:
            KeyRefused, Overloaded, StreamCut, ModelFailed
        """
        request: Json = {
            "model": self.name,
            "messages": [
                {"role": "system", "content": system},
                *(message for said in talk for message in _messages(said)),
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": t.name,
                        "description": t.description,
                        "parameters": t.schema,
                    },
                }
                for t in tools
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        answer: _Answer | None = None
        try:
            async with self._http.stream("POST", self._url, json=request) as response:
                if response.status_code != httpx2.codes.OK:
                    raise self._refused(response, await response.aread())
                answer = _Answer(request_id=response.headers.get("x-request-id"))
                async for event in httpx2.EventSource(response):
                    if event.data != DONE:
                        self._take(answer, event.data, heard)
        except httpx2.HTTPError as error:
            kind = StreamCut if answer else Overloaded
            raise kind(model=self.name, why=str(error) or type(error).__name__) from error
        if answer.stop is None:
            raise StreamCut(model=self.name, why="its end is missing")
        return answer.turn()

    def _take(self, answer: "_Answer", data: str, heard: Heard) -> None:
        try:
            chunk = json.loads(data)
        except ValueError as error:
            raise StreamCut(model=self.name, why="a piece of it is no JSON") from error
        if why := chunk.get("error"):
            said = why.get("message") if isinstance(why, dict) else why
            raise Overloaded(model=self.name, why=said)
        answer.take(chunk, heard)

    def _refused(self, response: httpx2.Response, body: bytes) -> AgentError:
        said = body.decode("utf-8", "replace")
        try:
            said = json.loads(said)["error"]["message"]
        except (ValueError, KeyError, TypeError):
            said = " ".join(said.split())
        why = f"{said[:SHOWN_CHARS]} (HTTP {response.status_code})"
        if response.status_code in (401, 403):
            return KeyRefused(model=self.name, why=why, variable=KEY)
        if response.status_code in (408, 429) or response.status_code >= 500:
            after = retry_after(response.headers)
            return Overloaded(model=self.name, why=why, retry_after=after)
        return ModelFailed(model=self.name, why=why)


def _messages(said: Turn | Reply) -> list[Json]:
    if isinstance(said, Turn):
        return [said.raw]
    results = [{"role": "tool", "tool_call_id": o.id, "content": o.text} for o in said.outcomes]
    return [*results, *([{"role": "user", "content": said.text}] if said.text else [])]


@dataclass
class _Call:
    """A call whose pieces are still coming in."""

    id: str = ""
    name: str = ""
    written: str = ""

    @property
    def arguments(self) -> Json | None:
        try:
            found = json.loads(self.written or "{}")
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


@dataclass
class _Answer:
    """An answer whose pieces are still coming in."""

    request_id: str | None
    text: str = ""
    calls: dict[int, _Call] = field(default_factory=dict)
    stop: str | None = None
    refused: bool = False
    usage: Json | None = None

    def take(self, chunk: Json, heard: Heard) -> None:
        """Add one piece."""
        self.usage = chunk.get("usage") or self.usage
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            self.stop = choice.get("finish_reason") or self.stop
            if delta.get("refusal"):
                self.refused = True
            said = delta.get("content") or delta.get("refusal") or ""
            if said:
                self.text += said
                heard(said)
            for piece in delta.get("tool_calls") or ():
                self._take_call(piece)

    def _take_call(self, piece: Json) -> None:
        # Some endpoints number no calls; then a new id begins a new one.
        begins = bool(piece.get("id")) and all(c.id != piece["id"] for c in self.calls.values())
        last = max(len(self.calls) - 1, 0)
        index = piece.get("index", len(self.calls) if begins else last)
        call = self.calls.setdefault(index, _Call())
        function = piece.get("function") or {}
        call.id = piece.get("id") or call.id or f"call_{index}"
        call.name += function.get("name") or ""
        call.written += function.get("arguments") or ""

    def turn(self) -> Turn:
        """The whole answer."""
        stop = "declined" if self.refused else STOPS.get(self.stop)
        # A call in an answer that was cut off has no arguments to trust. Endpoints end an answer
        # with calls by one word or another, so the calls themselves decide.
        wanted = [] if stop else list(self.calls.values())
        raw: Json = {"role": "assistant", "content": self.text}
        if wanted:
            raw["tool_calls"] = [_sent_back(call) for call in wanted]
        return Turn(
            text=self.text,
            calls=tuple(ToolCall(id=c.id, tool=c.name, arguments=c.arguments) for c in wanted),
            stop=stop or ("calls" if wanted else "done"),
            tokens=None if self.usage is None else _tokens(self.usage),
            raw=raw,
            request_id=self.request_id,
        )


def _sent_back(call: _Call) -> Json:
    # Endpoints refuse a conversation with arguments that are no JSON.
    written = call.written if call.arguments else "{}"
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": written},
    }


def _tokens(usage: Json) -> dict[str, int]:
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return {
        "input": usage["prompt_tokens"] - cached,
        "cache_read": cached,
        "output": usage["completion_tokens"],
    }
