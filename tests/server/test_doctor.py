"""`kernelforge doctor` says what is there, what is not, and what to do about it."""

import json


def test_a_tool_that_is_missing_is_named_with_how_to_get_it(kernelforge, monkeypatch, tmp_path):
    found = {
        tool["name"]: tool for tool in json.loads(kernelforge("doctor", "--json").stdout)["tools"]
    }
    assert found["g++"]["place"].endswith("g++")
    monkeypatch.setenv("PATH", str(tmp_path))
    said = kernelforge("doctor").stdout
    assert "install g++ 11 or newer" in said
    assert "install binutils" in said


def test_it_knows_which_clients_were_told_of_the_server(kernelforge, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert "no MCP client is told of the server" in kernelforge("doctor").stdout
    assert kernelforge("install", "cursor").returncode == 0
    said = kernelforge("doctor").stdout.replace("\n", "")
    assert f"MCP clients: cursor in {tmp_path / '.cursor' / 'mcp.json'}" in said
