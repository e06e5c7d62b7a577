"""The Inspector, as a client that knows nothing of us: lists, lint, calls, over both transports."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance_suite import Row
from conformance_tools import INSPECTOR, call

TOOL_SAID_NO = 5  # the Inspector's exit code for a tool's own error
STATUS = ("tools/call", "--tool-name", "get_status", "--tool-args-json", "{}")
UNKNOWN = ("tools/call", "--tool-name", "get_card", "--tool-args-json", '{"card_id": "c9"}')


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One call of the Inspector, the exit code it ends with and what its result has to say."""

    words: Sequence[str]
    right: Callable[[dict[str, Any]], bool]
    code: int = 0


def _listed(result: dict[str, Any]) -> bool:
    return {"capture_model", "mcts_select", "export_cast"} <= {t["name"] for t in result["tools"]}


def _negotiated(revision: str) -> Callable[[dict[str, Any]], bool]:
    return lambda result: result["protocolVersion"] == revision


PROBES = {
    "lint": Probe(words=("tools/list", "--strict"), right=_listed),
    "lint, newest protocol": Probe(
        words=("tools/list", "--strict", "--protocol-era", "modern"), right=_listed
    ),
    "older protocol": Probe(words=("initialize",), right=_negotiated("2025-11-25")),
    "newest protocol": Probe(
        words=("initialize", "--protocol-era", "auto"), right=_negotiated("2026-07-28")
    ),
    "call": Probe(words=STATUS, right=lambda r: r["structuredContent"]["status"] == "ok"),
    "refused call": Probe(
        words=UNKNOWN, right=lambda r: "Next:" in r["content"][0]["text"], code=TOOL_SAID_NO
    ),
    "resource": Probe(
        words=("resources/read", "--uri", "kernelforge://guide"),
        right=lambda r: "## Candidate format" in r["contents"][0]["text"],
    ),
    "prompt": Probe(
        words=(
            "prompts/get", "--prompt-name", "optimize_model", "--prompt-args", "model=model.py",
        ),
        right=lambda r: "model.py" in r["messages"][0]["content"]["text"],
    ),
}  # fmt: skip


def inspected(title: str, target: Sequence[str], home: Path) -> Row:
    """Every probe against a server that is started by a command, or reached at an address."""
    home.mkdir(parents=True)
    wrong = [said for name, probe in PROBES.items() if (said := _wrong(name, probe, target, home))]
    return Row(title=title, passed=len(PROBES) - len(wrong), wrong=tuple(wrong))


def _wrong(name: str, probe: Probe, target: Sequence[str], home: Path) -> str:
    """What a probe found fault with; empty when nothing."""
    words = ["node", INSPECTOR, "--cli", *target, "--method", *probe.words, "--format", "json"]
    ended = call(words, home)
    if ended.code != probe.code:
        return f"{name}: exit code {ended.code}: {(ended.err or ended.out).strip()[-300:]}"
    if "--strict" in probe.words and ended.err.strip():
        return f"{name}: {ended.err.strip()[:300]}"
    found = json.loads(ended.out)["result"]
    return "" if probe.right(found) else f"{name}: an unexpected answer: {str(found)[:300]}"
