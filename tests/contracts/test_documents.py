"""What the documents show works."""

import re
from pathlib import Path

import pytest
import typer

from kernelforge_engine.launch.header import parse_source
from kernelforge_server.cli.app import app
from kernelforge_tools import guide
from kernelforge_tools.registry import tools

README = (Path(__file__).parent.parent.parent / "README.md").read_text("utf-8")
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
    rows = re.findall(r"^\| `kernelforge ((?:cast |captures )?[a-z]+)", README, re.MULTILINE)
    assert set(rows) == _commands()


def test_the_readme_lists_exactly_the_tools_there_are():
    rows = re.findall(r"^\| `([a-z_]+)` \|", README, re.MULTILINE)
    assert set(rows) == {tool.name for tool in tools()}


@pytest.mark.parametrize(("language", "text"), EXAMPLES)
def test_an_example_candidate_is_accepted(language, text):
    source = parse_source(text, "cuda" if language == "cuda" else "cpu")
    assert source.plan.launches
