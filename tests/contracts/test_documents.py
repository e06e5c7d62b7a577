"""What the documents show works."""

import re
from pathlib import Path

import pytest
import typer

from kernelforge_engine.jobs import MOST_RUNNING
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.plans import MAX_SOURCE_BYTES
from kernelforge_server import over_http
from kernelforge_server.cli.app import app
from kernelforge_tools import bounds, guide
from kernelforge_tools.registry import tools
from kernelforge_tools.waiting import MAX_WAIT_S

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text("utf-8")
SECURITY = (ROOT / "docs" / "security.md").read_text("utf-8")
EXAMPLES = [
    (language, text)
    for document in (README, guide.TEXT)
    for language, text in re.findall(r"```(cuda|cpp)\n(.*?)```", document, re.DOTALL)
]


def _commands() -> set[str]:
    root = typer.main.get_command(app)
    names = set()
    for name, command in root.commands.items():
        below = getattr(command, "commands", None)
        names |= {f"{name} {sub}" for sub in below or ()}
        if not below or command.invoke_without_command:
            names.add(name)
    return names


def test_the_readme_lists_exactly_the_commands_there_are():
    rows = re.findall(
        r"^\| `kernelforge ((?:cast |captures |agent |library )?[a-z]+)", README, re.MULTILINE
    )
    assert set(rows) == _commands()


def test_the_readme_lists_exactly_the_tools_there_are():
    rows = re.findall(r"^\| `([a-z_]+)` \|", README, re.MULTILINE)
    assert set(rows) == {tool.name for tool in tools()}


@pytest.mark.parametrize(("language", "text"), EXAMPLES)
def test_an_example_candidate_is_accepted(language, text):
    source = parse_source(text, "cuda" if language == "cuda" else "cpu")
    assert source.plan.launches


@pytest.mark.parametrize(("folder", "text"), [(ROOT, README), (ROOT / "docs", SECURITY)])
def test_every_file_that_a_document_points_at_is_there(folder, text):
    links = re.findall(r"\]\((?!https?://)([^)#\s]+)", text)
    assert links
    assert [link for link in links if not (folder / link).exists()] == []


def test_the_page_on_security_names_the_limits_that_hold():
    shown = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", SECURITY, re.MULTILINE))
    assert shown["source of a candidate"] == f"{MAX_SOURCE_BYTES >> 10} KiB"
    assert shown["another text argument, a list"] == (
        f"{bounds.MAX_TEXT_BYTES:,} bytes, {bounds.MAX_ENTRIES} entries"
    )
    assert shown["body of an HTTP request"] == f"{over_http.MAX_BODY_BYTES >> 20} MiB"
    assert shown["jobs that run or wait"] == f"{MOST_RUNNING}"
    assert shown["sessions and connections over HTTP"] == (
        f"{over_http.MAX_SESSIONS} and {over_http.MAX_CONNECTIONS}"
    )
    assert shown["wait of one call"] == f"{MAX_WAIT_S} s"
    assert shown["answer of a tool"] == f"{bounds.MAX_ANSWER_CHARS:,} characters"
    assert f"({over_http.LEAST_TOKEN_BYTES} bytes at least" in SECURITY
