"""Credentials that meet the real server, and everything it says afterwards."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import contextmanager

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

HOME = "/home/marguerite"
TOKEN = "f00dfeed" * 5
SECRETS = {
    "KERNELFORGE_TOKEN": TOKEN,
    "DEPLOY_PASSWORD": "correct horse battery",
    "HF_TOKEN": "not-shaped-like-any-key",
}
SHAPED = (
    "sk-ant-api03-abcdefghijklmnopqrstuvwxyz",
    "hf_abcdefghijklmnopqrstuvwxyz",
    "ghp_abcdefghijklmnopqrstuvwxyz0123",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh",
    "xyzzy-plugh-12345",  # behind Bearer
    "hunter2hunter2",  # behind api_key=
    "s3cr3tpass",  # in the address of a database
)
TEXT = (
    f"{SHAPED[0]} {SHAPED[1]} {SHAPED[2]} {SHAPED[3]} Authorization: Bearer {SHAPED[4]} "
    f"api_key={SHAPED[5]} postgres://me:{SHAPED[6]}@db {' '.join(SECRETS.values())} "
    f"{HOME}/private.txt"
)
MODEL = f"""
import os
import sys

TEXT = {TEXT!r}


def raises():
    raise RuntimeError(TEXT)


def dies():
    print(TEXT, file=sys.stderr, flush=True)
    os.abort()


def half_way():
    import torch

    def run(x):
        y = torch.relu(x)
        raise RuntimeError(TEXT)

    return run


def make_inputs():
    import torch

    return torch.ones(4)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def leaks(text):
    return [s for s in (*SHAPED, *SECRETS.values(), "marguerite") if s in text]


async def said(client, folder):
    """Everything that a client is told of models that give away what they know."""
    texts = []
    for factory in ("raises", "dies", "half_way"):
        asked = {"model": f"{folder}/model.py:{factory}", "wait_s": 240}
        answer = await client.call_tool("capture_model", asked)
        texts.append(answer.content[0].text)
    assert "raised" in texts[0] or "RuntimeError" in texts[0]
    assert "SIGABRT" in texts[1]
    assert json.loads(texts[2])["status"] == "partial"
    for job in ("j1", "j2", "j3"):
        read = await client.read_resource(f"kernelforge://jobs/{job}/log")
        texts.append(read.contents[0].text)
    for tool, arguments in (
        ("get_card", {"card_id": f"Bearer {SHAPED[4]}"}),
        ("inspect_cast", {"path": f"{HOME}/x.cast"}),
        ("get_node", {"node": TEXT}),
        ("export_cast", {"path": TOKEN}),
    ):
        answer = await client.call_tool(tool, arguments)
        assert answer.is_error
        texts.append(answer.content[0].text)
    return "\n".join(texts)


def stored(folder):
    """What the database holds of jobs and captures."""
    with sqlite3.connect(folder / "project" / "forge.db") as database:
        rows = database.execute("SELECT error, result FROM jobs").fetchall()
        rows += database.execute("SELECT record FROM captures").fetchall()
    return str(rows)


async def test_over_standard_output_no_secret_reaches_an_answer_a_log_or_the_project(folder):
    environment = {**os.environ, **SECRETS, "HOME": HOME}  # noqa: TID251  a child's
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kernelforge_server", "mcp", "--project", str(folder / "project")],
        env=environment,
        cwd=str(folder),
    )
    with (folder / "log").open("w") as log:
        async with Client(stdio_client(parameters, errlog=log)) as client:
            told = await said(client, folder)
    written = (folder / "log").read_text()
    assert "[hidden]" in told
    assert "~/private.txt" in told
    assert "SIGABRT" in written
    assert leaks(told) == []
    assert leaks(written) == []
    assert leaks(stored(folder)) == []


@contextmanager
def serving(folder, log):
    """A server over HTTP, and its address."""
    environment = {**os.environ, **SECRETS, "HOME": HOME}  # noqa: TID251  a child's
    command = [sys.executable, "-m", "kernelforge_server", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--project", str(folder / "project")],
        stdout=log, stderr=subprocess.PIPE, text=True, env=environment,
    ) as server:  # fmt: skip
        yield server.stderr.readline().split()[-1]
        server.terminate()
        log.write(server.communicate(timeout=60)[1])


async def test_over_http_no_secret_reaches_an_answer_or_a_log(folder):
    with (folder / "log").open("w") as log, serving(folder, log) as url:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=300) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            told = await said(client, folder)
            wrong = {"Authorization": f"Bearer {SHAPED[4]}"}
            told += (await http.post(url, headers=wrong, content="{")).text
            told += (await http.post(url, content=f'{{"Bearer": "{TEXT}')).text
            told += (await http.post(f"{url}?api_key={SHAPED[5]}", content="{}")).text
            told += (await http.post(url, headers={"Host": "evil.example"}, content="{}")).text
    written = (folder / "log").read_text()
    assert "SIGABRT" in written
    assert leaks(told) == []
    assert leaks(written) == []
