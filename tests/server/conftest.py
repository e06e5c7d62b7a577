"""Servers as clients find them, in both transports and every era of the protocol."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.types import Implementation

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
        self.url, self._said = found[1], None

    @property
    def pid(self):
        return self._process.pid

    def post(self, **headers):
        return httpx2.post(self.url, json=PING, headers={**HEADERS, **headers}).status_code

    def end(self, number=signal.SIGTERM):
        """What it ends with when it is asked to, and what it said."""
        if self._said is None:
            self._process.send_signal(number)
            _, self._said = self._process.communicate(timeout=60)
        return self._process.returncode, self._said


@pytest.fixture
def serve(tmp_path):
    running = []

    def start(*options, token=""):
        running.append(Served(tmp_path, *options, token=token))
        return running[-1]

    yield start
    for served in running:
        served.end()


class Relay:
    """A way to a server on this machine, whose connections can be cut in the middle."""

    def __init__(self, url):
        self._port, self._open = int(re.search(r":(\d+)/", url)[1]), []

    async def serve(self, *, task_status):
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            port = listener.extra(SocketAttribute.local_port)
            task_status.started(f"http://127.0.0.1:{port}/mcp")
            await listener.serve(self._connection)

    def cut(self):
        for scope in self._open:
            scope.cancel()
        self._open.clear()

    async def _connection(self, near):
        async with (
            near,
            await anyio.connect_tcp("127.0.0.1", self._port) as far,
            anyio.create_task_group() as group,
        ):
            self._open.append(group.cancel_scope)
            group.start_soon(self._pass_on, near, far)
            group.start_soon(self._pass_on, far, near)

    async def _pass_on(self, source, target):
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for part in source:
                await target.send(part)
            await target.send_eof()


@dataclass(frozen=True)
class Reach:
    """How clients reach servers on the project of a test."""

    transport: str
    mode: str
    serve: Callable[[], Served]
    parameters: StdioServerParameters

    @asynccontextmanager
    async def server(self):
        """What a client connects to; over HTTP, a server that serves until the end."""
        if self.transport == "stdio":
            yield self.parameters
            return
        served = self.serve()
        try:
            yield served.url
        finally:
            await anyio.to_thread.run_sync(served.end)

    def client(self, server, name="test", **more):
        who = Implementation(name=name, version="0")
        return Client(server, **{"mode": self.mode, "client_info": who, **more})

    @asynccontextmanager
    async def relayed(self, server):
        """A client, and over HTTP the relay that it goes through."""
        async with anyio.create_task_group() as group:
            relay = Relay(server) if self.transport == "http" else None
            way = await group.start(relay.serve) if relay else server
            async with self.client(way) as client:
                yield client, relay
            group.cancel_scope.cancel()


@pytest.fixture
def reaching(tmp_path, serve, python_command):
    """Makes a Reach of a transport and a mode of the SDK's client."""
    ours = {k: v for k, v in os.environ.items() if k.startswith("KERNELFORGE_")}  # noqa: TID251
    parameters = StdioServerParameters(
        command=python_command[0],
        env=ours,  # the SDK would hand down next to nothing
        args=[*python_command[1:], "mcp", "--project", str(tmp_path / "project")],
        cwd=str(tmp_path),
    )
    return lambda transport, mode: Reach(transport, mode, serve, parameters)


class Agent:
    """A client that waits for jobs and knows refusals from answers."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content[0].text
        found: dict[str, Any] = answer.structured_content
        waiting = arguments.get("wait_s") != 0 and found["status"] == "running"
        return await self.call("wait_job", job_id=found["job_id"]) if waiting else found

    async def refused(self, tool: str, **arguments: object) -> str:
        answer = await self.client.call_tool(tool, arguments)
        assert answer.is_error
        return answer.content[0].text

    async def variant_of(self, operator: str) -> str:
        cards = (await self.call("list_cards"))["data"]["cards"]
        card = next(c["id"] for c in cards if c["operator"] == operator)
        return (await self.call("get_card", card_id=card))["data"]["header"]["variant_id"]


@pytest.fixture
def agent_of():
    return Agent


GATED = """
import time
from pathlib import Path
import torch


def make_model():
    while not Path(__file__).with_name("gate").exists():
        time.sleep(0.02)
    return torch.nn.ReLU()


def make_inputs():
    return torch.ones(4, 4)
"""


@dataclass(frozen=True)
class Gated:
    """A model that is made once its gate is open: a capture as long as a test wants it."""

    file: Path

    def open(self):
        self.file.with_name("gate").touch()

    def close(self):
        self.file.with_name("gate").unlink()


@pytest.fixture
def gated(tmp_path):
    (tmp_path / "gated.py").write_text(GATED)
    return Gated(tmp_path / "gated.py")
