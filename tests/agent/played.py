"""A model that is played: an endpoint whose answers follow from the conversation alone, and which
holds an answer back where a test wants to."""

import json
import re
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Calls = list[tuple[str, Json]]
# Yields a label with calls of tools, is sent their answers, and returns its last words.
Play = Generator[tuple[str, Calls], list[Json], str]
TOKENS = {"prompt_tokens": 100, "completion_tokens": 7}
DEADLINE_S = 120


class Played:
    """An endpoint with chat completions for the authors of a run, each of which plays its part."""

    def __init__(self, parts: dict[int, Callable[[], Play]]) -> None:
        self._parts = parts
        self._held: dict[tuple[int, str], tuple[threading.Event, threading.Event]] = {}
        played = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                delta = played.answer(asked["messages"])
                stop = "tool_calls" if delta.get("tool_calls") else "stop"
                chunks = [
                    {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]},
                    {"choices": [], "usage": TOKENS},
                ]
                lines = [json.dumps(chunk) for chunk in chunks] + ["[DONE]"]
                body = "".join(f"data: {line}\n\n" for line in lines).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "text/event-stream")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except ConnectionError:
                    self.close_connection = True  # whoever asked was killed

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        for _, let in self._held.values():
            let.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def hold(self, author: int, label: str) -> None:
        """Answer an author no more from where its part has that label."""
        self._held[author, label] = threading.Event(), threading.Event()

    def reached(self, author: int, label: str) -> None:
        """Wait until an author is held there."""
        assert self._held[author, label][0].wait(DEADLINE_S), (author, label)

    def let(self, author: int, label: str) -> None:
        """Hold it there no more."""
        self._held[author, label][1].set()

    def forget(self) -> None:
        """Hold nobody any more."""
        for _, let in self._held.values():
            let.set()
        self._held = {}

    def answer(self, messages: list[Json]) -> Json:
        """What an author says next, once it is not held."""
        told = next(m["content"] for m in messages if m["role"] == "user")
        author = int(re.search(r"You are author (\d)", told)[1])
        try:
            label, calls = self._next(author, messages)
        except StopIteration as end:
            return {"role": "assistant", "content": end.value}
        if (author, label) in self._held:
            is_there, let = self._held[author, label]
            is_there.set()
            assert let.wait(DEADLINE_S), (author, label)
        wanted = [
            {"index": n, "id": f"call_{n}", "type": "function",
             "function": {"name": tool, "arguments": json.dumps(given)}}
            for n, (tool, given) in enumerate(calls)
        ]  # fmt: skip
        return {"role": "assistant", "content": label, "tool_calls": wanted}

    def _next(self, author: int, messages: list[Json]) -> tuple[str, Calls]:
        part = self._parts[author]()
        move = next(part)
        for answers in _answers(messages):
            move = part.send(answers)
        return move


def _answers(messages: list[Json]) -> list[list[Json]]:
    """What came of the calls of every turn."""
    turns: list[list[Json]] = []
    for message in messages:
        if message["role"] == "assistant":
            turns.append([])
        elif message["role"] == "tool":
            turns[-1].append(_read(message["content"]))
    return turns


def _read(text: str) -> Json:
    """An answer without the brief that follows it; an error is in words."""
    if not text.startswith("{"):
        return {"status": "error", "summary": text}
    found: Json = json.JSONDecoder().raw_decode(text)[0]
    return found
