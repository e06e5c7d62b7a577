"""The server as a client starts it: a process that speaks over standard input and output."""

import json
import subprocess
import sys

import pytest

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
STATUS = {
    "jsonrpc": "2.0",
    "id": 3,
    "method": "tools/call",
    "params": {"name": "list_cards", "arguments": {}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def served(tmp_path):
    """A session of three requests, ended by the client; imports are reported on stderr."""
    command = [sys.executable, "-X", "importtime", "-m", "kernelforge_server", "mcp"]
    with (
        (tmp_path / "stderr").open("w") as log,
        subprocess.Popen(
            [*command, "--project", str(tmp_path / "project")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=tmp_path,
        ) as server,
    ):
        answers = []
        for message in (HELLO, READY, LIST, STATUS):
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            if "id" in message:
                answers.append(server.stdout.readline())
        rest, _ = server.communicate(timeout=60)
    return answers, rest, server.returncode, (tmp_path / "stderr").read_text()


def test_standard_output_carries_the_protocol_and_nothing_else(served):
    answers, rest, code, _ = served
    parsed = [json.loads(line) for line in answers]
    assert [a["id"] for a in parsed] == [1, 2, 3]
    assert parsed[0]["result"]["serverInfo"]["name"] == "kernelforge"
    assert "capture_model" in parsed[0]["result"]["instructions"]
    assert parsed[2]["result"]["isError"] is True
    assert "Next:" in parsed[2]["result"]["content"][0]["text"]
    assert rest == ""
    assert code == 0


def test_the_process_never_imports_torch(served):
    *_, words = served
    imported = {line.rsplit("|", 1)[-1].strip() for line in words.splitlines() if "|" in line}
    assert "kernelforge_engine.engine" in imported
    assert {name for name in imported if name.split(".")[0] in {"torch", "numpy"}} == set()
    assert "Traceback" not in words


NOISY = """
import ctypes, os, subprocess, sys
from pathlib import Path
import torch


def noise(where):
    print("noise of print", where, "{" * 10_000)
    print("noise on stderr", where, file=sys.stderr, flush=True)
    ctypes.CDLL(None).write(1, b"noise of C\\n", 11)
    ctypes.CDLL(None).printf(b"noise in the buffer of C\\n")
    os.write(1, b"\\xff noise\\0\\n")
    os.system("echo noise of a shell")
    subprocess.run(["echo", "noise of a child"])
    Path(__file__).with_name(where).touch()


class Model(torch.nn.Module):
    def forward(self, x):
        noise("in_forward")
        return torch.relu(x)


def make_model():
    noise("in_the_factory")
    return Model()


def make_inputs():
    return torch.ones(4, 4)


noise("at_import")
"""


async def test_whatever_a_model_prints_the_channel_carries_the_protocol_alone(
    reaching, agent_of, tmp_path
):
    (tmp_path / "noisy.py").write_text(NOISY)
    reach = reaching("stdio", "auto")
    server = reach.parameters
    recorded = server.model_copy(
        update={
            "command": "sh",
            "args": ["-c", '"$@" | tee wire', "sh", server.command, *server.args],
        }
    )
    async with reach.client(recorded) as client:
        found = await agent_of(client).call("capture_model", model=str(tmp_path / "noisy.py"))
        assert found["data"]["calls"] == 1
    lines = (tmp_path / "wire").read_text().splitlines()
    assert {json.loads(line)["jsonrpc"] for line in lines} == {"2.0"}
    assert not [line for line in lines if "noise" in line]
    assert all((tmp_path / where).exists() for where in ("at_import", "in_forward"))
