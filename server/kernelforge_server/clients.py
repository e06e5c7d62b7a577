"""How each MCP client is told of this server: where its configuration lies, what goes into it."""

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kernelforge_engine.errors import NotWritten

NAME = "kernelforge"
CALL_MS = 1_800_000  # clients that bound a call give up on a capture otherwise
START_SECONDS = 60  # the first start after an update compiles Python
# Codex hands a server nothing of the environment but what is named.
FORWARDED = (
    "CC", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "CXX", "HF_HOME", "KERNELFORGE_CACHE",
    "KERNELFORGE_LIBRARY", "KERNELFORGE_PRICES", "KERNELFORGE_PROJECT", "KERNELFORGE_QUOTA_BYTES",
    "KERNELFORGE_REQUIRE_SANDBOX", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONPATH",
    "XDG_CACHE_HOME", "XDG_DATA_HOME",
)  # fmt: skip
Scope = Literal["project", "user"]


@dataclass(frozen=True, kw_only=True)
class Client:
    """One client: its configuration files by scope, and how an entry is nested and written.

    Attributes:
        title: as its makers call it.
        files: below the working folder (project) or the home folder (user).
        key: the table of servers.
        extra: what an entry holds beside the command.
        command: run by hand for a scope without a file of its own; `{argv}` is the server's
            command line and `{entry}` its entry as JSON.
    """

    title: str
    files: Mapping[Scope, str]
    key: str = "mcpServers"
    extra: Mapping[str, Any] | None = None
    command: str = ""


CLIENTS = {
    "claude-code": Client(
        title="Claude Code",
        files={"project": ".mcp.json"},
        extra={"timeout": CALL_MS},
        command="claude mcp add --scope user kernelforge -- {argv}",
    ),
    "vscode": Client(
        title="VS Code",
        files={"project": ".vscode/mcp.json"},
        key="servers",
        extra={"type": "stdio"},
        command="code --add-mcp {entry}",
    ),
    "cursor": Client(
        title="Cursor", files={"project": ".cursor/mcp.json", "user": ".cursor/mcp.json"}
    ),
    "codex": Client(
        title="Codex",
        # That of a project is read only where the project is trusted.
        files={"user": ".codex/config.toml", "project": ".codex/config.toml"},
        key="mcp_servers",
        extra={
            "startup_timeout_sec": START_SECONDS,
            "tool_timeout_sec": CALL_MS // 1000,
            "env_vars": list(FORWARDED),
        },
    ),
    "gemini": Client(
        title="Gemini CLI",
        files={"project": ".gemini/settings.json", "user": ".gemini/settings.json"},
        extra={"timeout": CALL_MS},
    ),
}


def server_command() -> list[str]:
    """What a client starts, in full: its PATH is not this one's."""
    script = Path(sys.executable).with_name(NAME)
    own = [str(script)] if script.is_file() else [sys.executable, "-m", "kernelforge_server"]
    return [*own, "mcp"]


def entry_of(client: Client, command: Sequence[str]) -> dict[str, Any]:
    """The entry of this server in a client's configuration."""
    return {"command": command[0], "args": list(command[1:]), **(client.extra or {})}


def by_hand(client: Client, command: Sequence[str]) -> str:
    """The client's own command that adds this server."""
    named = {"name": NAME, **entry_of(client, command)}
    return client.command.format(argv=shlex.join(command), entry=shlex.quote(json.dumps(named)))


def merged(path: Path, client: Client, command: Sequence[str]) -> str:
    """The text of a configuration file with this server in it; all else stays.

    Raises:
        NotWritten: the file cannot be read as what it should be.
    """
    text = path.read_text("utf-8") if path.is_file() else ""
    return (
        _toml(text, client, command)
        if path.suffix == ".toml"
        else _json(path, text, client, command)
    )


def configured(folder: Path, home: Path) -> dict[str, Path]:
    """The clients whose configuration names this server, with the file that does."""
    found = {}
    for name, client in CLIENTS.items():
        for scope, place in client.files.items():
            path = (home if scope == "user" else folder) / place
            if path.is_file() and NAME in path.read_text("utf-8", errors="replace"):
                found[name] = path
    return found


def write(path: Path, text: str) -> None:
    """Replace a file as a whole.

    Raises:
        NotWritten: it cannot be.
    """
    beside = path.with_name(f".{path.name}.{NAME}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, "utf-8")
        os.replace(beside, path)  # noqa: PTH105  a client may read it meanwhile
    except OSError as error:
        raise NotWritten(
            what="The configuration",
            path=str(path),
            why=error.strerror or str(error),
            step="make that place writable, or add what --print shows by hand",
        ) from error


def _json(path: Path, text: str, client: Client, command: Sequence[str]) -> str:
    try:
        document = json.loads(text) if text.strip() else {}
        servers = document.setdefault(client.key, {})
        servers[NAME] = entry_of(client, command)
    except (ValueError, AttributeError, TypeError) as error:
        raise NotWritten(
            what="The configuration",
            path=str(path),
            why="it is no JSON object as this client writes it (comments are none)",
            step="mend that file, or add what --print shows by hand",
        ) from error
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _toml(text: str, client: Client, command: Sequence[str]) -> str:
    """The other tables of the file stay as they are, comments too."""
    head = f"[{client.key}.{NAME}]"
    # Every value in an entry is written the same in TOML as in JSON.
    values = entry_of(client, command).items()
    lines = [head, *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values)]
    own = re.compile(rf"^{re.escape(head)}[^\n]*\n(?:(?!\[)[^\n]*\n?)*", re.MULTILINE)
    rest = own.sub("", text).rstrip("\n")
    return "\n".join([*([rest, ""] if rest else []), *lines]) + "\n"
