"""The official conformance suite: running a requirement set and reading what it found."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance_tools import CONFORMANCE, call

REVISIONS = ("2025-11-25", "2026-07-28")
EXPECTED = tomllib.loads(Path(__file__).with_name("expected_failures.toml").read_text("utf-8"))

# What asks for no tool, resource or prompt by a name of the suite's own, nor is satisfied by the
# error that an unknown one gives.
FIXTURE_FREE = {
    "2025-11-25": (
        "server-initialize", "server-session-lifecycle", "ping", "completion-complete",
        "tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ),
    "2026-07-28": (
        "completion-complete", "tools-list", "resources-list", "prompts-list", "caching",
        "sep-2164-resource-not-found", "input-required-result-unsupported-methods",
        "http-header-validation", "server-sse-multiple-streams", "dns-rebinding-protection",
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What became of one scenario.

    Attributes:
        passed: how many of its checks did.
        failed: the ids of those that did not.
    """

    passed: int
    failed: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a requirement set; `clean` is the suite's own verdict on what it requires."""

    scenarios: Mapping[str, Scenario]
    clean: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table, and what is wrong with it."""

    title: str
    passed: int
    expected: int = 0
    skipped: int = 0
    checks: int = 0
    wrong: tuple[str, ...] = ()


def run_set(url: str, revision: str, folder: Path) -> Run:
    """Run everything that a revision of the protocol requires, and what is reported beside it."""
    folder.mkdir(parents=True)
    asked = ("server", "--url", url, "--requirements", revision, "-o", folder)
    ended = call(["node", CONFORMANCE, *asked], folder)
    (folder / "output.txt").write_text(ended.out + ended.err)
    scenarios = {
        _name(found.parent.name): _scenario(json.loads(found.read_text("utf-8")))
        for found in sorted(folder.glob("server-*/checks.json"))
    }
    return Run(scenarios=scenarios, clean=ended.code == 0)


def _name(folder: str) -> str:
    return re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\dZ-]+$", "", folder)


def _scenario(checks: Iterable[Mapping[str, str]]) -> Scenario:
    checks = list(checks)
    return Scenario(
        passed=sum(check["status"] == "SUCCESS" for check in checks),
        failed=frozenset(check["id"] for check in checks if check["status"] == "FAILURE"),
    )


def judged(revision: str, ours: Run, bare: Run) -> Row:
    """Every scenario passes on our server, but for those that the SDK's own fails too."""
    expected = EXPECTED.get(revision, {})
    failing = {name for name, found in ours.scenarios.items() if found.failed}
    passing = {name for name, found in ours.scenarios.items() if found.passed} - failing
    wrong = [f"{name} fails" for name in sorted(failing - set(expected))]
    wrong += [f"{name} is expected to fail and passes" for name in sorted(set(expected) - failing)]
    wrong += [
        f"{name} is expected to fail, and a bare MCPServer does otherwise"
        for name in sorted(failing & set(expected))
        if ours.scenarios[name].failed != bare.scenarios[name].failed
    ]
    if not ours.clean and not wrong:
        wrong.append("the suite ended with an error; see its output.txt")
    return Row(
        title=f"suite {revision}, with fixtures",
        passed=len(passing),
        expected=len(failing & set(expected)),
        skipped=len(ours.scenarios) - len(passing) - len(failing),
        checks=sum(ours.scenarios[name].passed for name in passing),
        wrong=tuple(wrong),
    )


def judged_product(revision: str, run: Run) -> Row:
    """Every scenario that needs no fixture passes on the server as users start it."""
    passing = [
        name
        for name in FIXTURE_FREE[revision]
        if (found := run.scenarios.get(name)) and found.passed and not found.failed
    ]
    return Row(
        title=f"suite {revision}, kernelforge serve",
        passed=len(passing),
        checks=sum(run.scenarios[name].passed for name in passing),
        wrong=tuple(f"{name} fails" for name in FIXTURE_FREE[revision] if name not in passing),
    )
