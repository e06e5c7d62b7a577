"""The server over HTTP: a real process, real clients, and who is let in."""

import os
import re
import signal
import subprocess
import sys

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

TOKEN = "0123456789abcdef" * 2
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Served:
    """A running `kernelforge serve`."""

    def __init__(self, folder, *options, token=""):
        environment = {**os.environ, "KERNELFORGE_TOKEN": token}  # noqa: TID251  a child's
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kernelforge_server", "serve", "--port", "0", *options,
             "--project", str(folder / "project")],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip
        said = self._process.stderr.readline()
        found = re.fullmatch(r"Serving (http://\S+/mcp)\n", said)
        assert found, said + self._process.stderr.read()
        self.url = found[1]

    @property
    def pid(self):
        return self._process.pid

    def post(self, **headers):
        return httpx2.post(self.url, json=PING, headers={**HEADERS, **headers}).status_code

    def end(self):
        """What it ends with when it is asked to, and what it said."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            _, self._rest = self._process.communicate(timeout=60)
        return self._process.returncode, self._rest


@pytest.fixture
def serve(tmp_path):
    running = []

    def start(*options, token=""):
        running.append(Served(tmp_path, *options, token=token))
        return running[-1]

    yield start
    for served in running:
        served.end()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_two_clients_work_on_one_project(serve, user_projects, mode):
    served = serve()
    arguments = {"model": str(user_projects / "small_mlp" / "model.py"), "wait_s": 120}
    async with Client(served.url, mode=mode) as one, Client(served.url, mode=mode) as two:
        found = {}

        async def capture(name, client):
            found[name] = (await client.call_tool("capture_model", arguments)).structured_content

        async with anyio.create_task_group() as group:
            group.start_soon(capture, "one", one)
            group.start_soon(capture, "two", two)
        assert {answer["data"]["capture_id"] for answer in found.values()} == {"c1"}
        cards = (await two.call_tool("list_cards", {})).structured_content["data"]
        assert cards["capture_id"] == "c1"


async def test_it_ends_with_its_children_when_it_is_asked_to(serve, processes):
    served = serve()
    async with Client(served.url) as client:
        await client.call_tool("get_status", {})
    children = processes.below(served.pid)
    assert children
    code, words = served.end()
    assert code in (0, -signal.SIGTERM)
    assert "Traceback" not in words
    await processes.gone(children)


def test_other_hosts_and_pages_of_other_sites_are_turned_away(serve):
    served = serve()
    assert served.post() in (200, 202, 400)
    assert served.post(Host="evil.example") == 421
    assert served.post(Origin="https://evil.example") == 403


def _opened(served):
    """The status of a request that opens a session as older clients do."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    }
    return httpx2.post(served.url, json=hello, headers=HEADERS).status_code


def test_a_request_beyond_4_mib_and_a_65th_session_are_refused(serve):
    served = serve()
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "x": "' + b"x" * (4 << 20) + b'"}'
    assert httpx2.post(served.url, content=body, headers=HEADERS).status_code == 413
    assert {_opened(served) for _ in range(64)} == {200}
    assert _opened(served) in (429, 503)


async def test_a_token_is_asked_of_everybody_where_one_is_set(serve):
    served = serve(token=TOKEN)
    assert served.post() == 401
    assert served.post(Authorization=f"Bearer {TOKEN[:-1]}x") == 401
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,  # a status may start the Judge
        Client(streamable_http_client(served.url, http_client=http)) as client,
    ):
        answer = await client.call_tool("get_status", {})
    assert answer.structured_content["status"] == "ok"


@pytest.mark.parametrize(
    ("options", "token", "words"),
    [
        (["--host", "0.0.0.0"], "", "KERNELFORGE_TOKEN"),
        (["--host", "0.0.0.0"], TOKEN, "--allowed-host"),
        ([], "hunter2", "shorter than 32 bytes"),
        (["--host", "203.0.113.7", "--allowed-host", "forge"], TOKEN, "another port"),
    ],
)
def test_a_door_that_would_be_open_to_anybody_is_not_opened(
    kernelforge, sentence, monkeypatch, options, token, words
):
    monkeypatch.setenv("KERNELFORGE_TOKEN", token)
    said = sentence(kernelforge("serve", "--port", "0", *options), 2)
    assert words in said
    assert token == "" or token not in said
