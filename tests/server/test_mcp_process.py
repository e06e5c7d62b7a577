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
