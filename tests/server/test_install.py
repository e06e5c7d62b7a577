"""`kernelforge install` in a folder and a home of the test's own."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from kernelforge_server import settings

FILES = {
    "claude-code": (".mcp.json", "mcpServers"),
    "vscode": (".vscode/mcp.json", "servers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def entry(path, key):
    return json.loads(path.read_text())[key]["kernelforge"]


@pytest.mark.parametrize("client", FILES)
def test_a_client_is_told_of_the_server_and_keeps_what_it_had(kernelforge, tmp_path, home, client):
    name, key = FILES[client]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"theme": "dark", key: {"other": {"command": "x"}}}))
    for _ in range(2):
        done = kernelforge("install", client)
        assert done.returncode == 0, done.stderr
        assert str(path) in done.stdout.replace("\n", "")
    document = json.loads(path.read_text())
    assert document["theme"] == "dark"
    assert set(document[key]) == {"other", "kernelforge"}
    assert entry(path, key)["args"][-1] == "mcp"
    assert list(path.parent.glob(".*.kernelforge")) == []


def test_what_a_client_starts_is_the_server(kernelforge, tmp_path, home):
    assert kernelforge("install", "cursor", "--scope", "user").returncode == 0
    found = entry(home / ".cursor" / "mcp.json", "mcpServers")
    assert found["command"].startswith("/")
    assert not (tmp_path / ".cursor").exists()


def test_codex_keeps_its_other_tables_and_comments(kernelforge, home):
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"\n')
    for _ in range(2):
        assert kernelforge("install", "codex").returncode == 0
    text = path.read_text()
    document = tomllib.loads(text)
    assert text.startswith("# mine\n")
    assert set(document["mcp_servers"]) == {"other", "kernelforge"}
    added = document["mcp_servers"]["kernelforge"]
    assert added["args"] == ["mcp"]
    assert added["tool_timeout_sec"] >= 600


def test_codex_hands_on_what_says_which_device_and_which_project(kernelforge, tmp_path, home):
    assert kernelforge("install", "codex", "--scope", "project").returncode == 0
    document = tomllib.loads((tmp_path / ".codex" / "config.toml").read_text())
    named = document["mcp_servers"]["kernelforge"]["env_vars"]
    ours = set(re.findall(r'"(KERNELFORGE_[A-Z_]+)"', Path(settings.__file__).read_text()))
    assert ours - {"KERNELFORGE_TOKEN"} <= set(named)
    assert {"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"} <= set(named)
    assert not [name for name in named if name.endswith(("KEY", "TOKEN", "SECRET"))]


def test_nothing_is_written_when_it_is_only_printed(kernelforge, tmp_path, home):
    done = kernelforge("install", "claude-code", "--print")
    assert '"mcpServers"' in done.stdout
    assert not (tmp_path / ".mcp.json").exists()


def test_a_scope_without_a_file_names_the_clients_own_command(kernelforge, home):
    done = kernelforge("install", "claude-code", "--scope", "user")
    assert "claude mcp add --scope user kernelforge -- /" in done.stdout


def test_a_file_that_is_no_json_stays_as_it_is(kernelforge, sentence, tmp_path, home):
    path = tmp_path / ".mcp.json"
    path.write_text("{ // a comment\n}")
    said = sentence(kernelforge("install", "claude-code"), 1)
    assert "no JSON object" in said
    assert path.read_text() == "{ // a comment\n}"
