"""An endpoint that speaks the wire formats of model makers, and a real tool server to work on."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from kernelforge_agent.budget import Budget
from kernelforge_agent.job import Around, Job, Task
from kernelforge_agent.result import Result
from kernelforge_agent.run import run

KEY = "sk-not-to-be-written-down"
TOKEN = "0123456789abcdef" * 2
IN_TOKENS, CACHED_TOKENS, OUT_TOKENS = 100, 40, 7
Json = dict[str, Any]


@dataclass(frozen=True)
class Response:
    """What the endpoint answers: a body at once, or pieces of a stream of which some are sent."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Json | None = None
    pieces: tuple[str, ...] = ()
    sent: int | None = None  # a connection that breaks after so many pieces
    ended: bool = True  # whether the body is ended as HTTP asks

    def cut(self, after: int, *, ended: bool = False) -> "Response":
        return replace(self, sent=after, ended=ended)


class Endpoint:
    """A server that answers with what it was given, in order, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Response] = []
        self.asked: list[Json] = []
        self.headers: list[dict[str, str]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                endpoint.asked.append(
                    json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                )
                endpoint.headers.append({name.lower(): v for name, v in self.headers.items()})
                self._answer(endpoint.answers.pop(0))

            def _answer(self, response):
                self.send_response(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                if response.body is not None:
                    data = json.dumps(response.body).encode()
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                    return
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in response.pieces[: response.sent]:
                    data = piece.encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                if response.ended:
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self.close_connection = True

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


class Messages:
    """The Messages API of Anthropic."""

    name = "messages"
    model = "claude-opus-5"
    variable = "ANTHROPIC_API_KEY"
    base = ""
    stops: ClassVar = {"calls": "tool_use", "done": "end_turn", "length": "max_tokens"}

    def answer(self, text="", calls=(), stop=None, thinking="") -> Response:
        usage = {
            "input_tokens": IN_TOKENS - CACHED_TOKENS,
            "cache_read_input_tokens": CACHED_TOKENS,
            "cache_creation_input_tokens": 0,
            "output_tokens": 1,
        }
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "content": [],
            "model": self.model, "stop_reason": None, "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        events = [{"type": "message_start", "message": message}, {"type": "ping"}]
        blocks = []
        if thinking:
            begun = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": thinking},
                {"type": "signature_delta", "signature": "signed"},
            ]
            blocks.append((begun, deltas))
        if text:
            pieces = [{"type": "text_delta", "text": half} for half in halves(text)]
            blocks.append(({"type": "text", "text": ""}, pieces))
        for number, (tool, written) in enumerate(calls):
            begun = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {}}
            pieces = [{"type": "input_json_delta", "partial_json": h} for h in halves(written)]
            blocks.append((begun, pieces))
        for index, (begun, deltas) in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": begun})
            events += [
                {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
            ]
            events.append({"type": "content_block_stop", "index": index})
        reason = stop or self.stops["calls" if calls else "done"]
        ending = {"stop_reason": reason, "stop_sequence": None}
        tokens = {"output_tokens": OUT_TOKENS}
        events += [
            {"type": "message_delta", "delta": ending, "usage": tokens},
            {"type": "message_stop"},
        ]
        return Response(
            headers={"request-id": "req_1"},
            pieces=tuple(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events),
        )

    def refusal(self) -> Response:
        return self.answer("I would rather not.", stop="refusal")

    def error(self, status: int, kind: str, **headers: str) -> Response:
        body = {"type": "error", "error": {"type": kind, "message": f"it is {kind}"}}
        return Response(status=status, headers=headers, body=body)

    def results(self, asked: Json) -> list[str]:
        """The tool results that a request ends with."""
        said = asked["messages"][-1]
        assert said["role"] == "user"
        return [block["content"] for block in said["content"] if block["type"] == "tool_result"]

    def words(self, asked: Json) -> str:
        """The text of the agent that a request ends with."""
        blocks = asked["messages"][-1]["content"]
        return "".join(block["text"] for block in blocks if block["type"] == "text")


class Completions:
    """The chat completions of OpenAI, as vLLM, Ollama and gateways speak them."""

    name = "completions"
    model = "openai:some-model"
    variable = "OPENAI_API_KEY"
    base = "/v1"
    stops: ClassVar = {"calls": "tool_calls", "done": "stop", "length": "length"}

    def answer(self, text="", calls=(), stop=None, usage=True) -> Response:
        deltas = [{"role": "assistant", "content": ""}]
        deltas += [{"content": half} for half in halves(text)] if text else []
        for index, (tool, written) in enumerate(calls):
            begun, rest = halves(written)
            named = {"index": index, "id": f"call_{index}", "type": "function"}
            deltas.append(
                {"tool_calls": [{**named, "function": {"name": tool, "arguments": begun}}]}
            )
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": rest}}]})
        reason = stop or self.stops["calls" if calls else "done"]
        chunks = [{"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        if usage:
            tokens = {
                "prompt_tokens": IN_TOKENS,
                "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
                "completion_tokens": OUT_TOKENS,
            }
            chunks.append({"choices": [], "usage": tokens})
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        return Response(pieces=(*lines, "data: [DONE]\n\n"))

    def refusal(self) -> Response:
        return self.answer("I would rather not.", stop="content_filter")

    def error(self, status: int, kind: str, **headers: str) -> Response:
        body = {"error": {"message": f"it is {kind}", "type": kind}}
        return Response(status=status, headers=headers, body=body)

    def results(self, asked: Json) -> list[str]:
        return [m["content"] for m in asked["messages"] if m["role"] == "tool"][-1:]

    def words(self, asked: Json) -> str:
        last = asked["messages"][-1]
        return last["content"] if last["role"] == "user" else ""


Dialect = Messages | Completions


@dataclass
class Stage:
    """A run of the agent against the endpoint, on a real server."""

    dialect: Dialect
    endpoint: Endpoint
    folder: Path
    server: str
    events: list[Json] = field(default_factory=list)

    def job(self, **changes: Any) -> Job:
        task = Task(model="model.py", device="cpu", goal="be quick", cast="model.cast")
        job = Job(
            task=task,
            model=self.dialect.model,
            base_url=self.endpoint.url + self.dialect.base,
            budget=Budget(),
            server=self.server,
        )
        return replace(job, **changes)

    async def run(self, *answers: Response, **changes: Any) -> Result:
        self.endpoint.answers += answers
        return await run(self.job(**changes), self.around)

    @property
    def around(self) -> Around:
        return Around(
            folder=self.folder,
            child=StdioServerParameters(command="not-started"),
            token=TOKEN,
            key=KEY,
            listener=self.events.append,
        )

    async def usage(self) -> Json:
        """What the server has on record."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(self.server, http_client=http)) as client,
        ):
            answer = await client.call_tool("get_status", {})
        return answer.structured_content["data"]["usage"]

    def heard(self, kind: str) -> list[Json]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def transcript(self) -> str:
        return (self.folder / "1.jsonl").read_text()


@pytest.fixture(scope="session")
def tool_server(tmp_path_factory: pytest.TempPathFactory):
    """The address of a running `kernelforge serve` that asks for a token."""
    project = tmp_path_factory.mktemp("served") / "project"
    serving = subprocess.Popen(
        [sys.executable, "-m", "kernelforge_server", "serve", "--port", "0", "--project", project],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        env={**os.environ, "KERNELFORGE_TOKEN": TOKEN},  # noqa: TID251  a child's
    )  # fmt: skip
    said = serving.stderr.readline()
    found = re.fullmatch(r"Serving (http://\S+/mcp)\n", said)
    assert found, said
    yield found[1]
    serving.terminate()
    serving.communicate(timeout=60)


@pytest.fixture
def endpoint():
    opened = Endpoint()
    yield opened
    opened.close()


@pytest.fixture
def staged(endpoint, tmp_path, tool_server, monkeypatch) -> Callable[[Dialect], Stage]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return lambda dialect: Stage(dialect, endpoint, tmp_path / uuid4().hex, tool_server)


@pytest.fixture(params=[Messages(), Completions()], ids=lambda dialect: dialect.name)
def stage(request, staged) -> Stage:
    """Once for each wire format."""
    return staged(request.param)


@pytest.fixture
def messages(staged) -> Stage:
    return staged(Messages())


@pytest.fixture
def completions(staged) -> Stage:
    return staged(Completions())
