"""The server over HTTP: a real process, real clients, and who is let in."""

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
TOKEN = "0123456789abcdef" * 2


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
