"""The command line of the agent: what it refuses, and what it shows before anything is asked."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from mcp import StdioServerParameters

from kernelforge_agent.budget import Budget, Price
from kernelforge_agent.errors import NotPossible
from kernelforge_agent.job import Around, Job, Task
from kernelforge_agent.run import run

OLD_SERVER = """
from mcp.server import MCPServer

server = MCPServer("old")


@server.tool()
def get_status() -> dict[str, object]:
    return {"status": "ok", "summary": "fine", "data": {"devices": []}}


@server.tool()
def profile_node(node_id: str) -> dict[str, object]:
    found = f"{node_id}: memory-bound, 41 % of peak."
    return {"status": "ok", "summary": found, "data": {"variant_id": "v1"}}


server.run("stdio")
"""


@pytest.fixture
def agent(kernelforge, tmp_path, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # where the SDK looks for keys too
    (tmp_path / "model.py").write_text("")
    return lambda *arguments: kernelforge("agent", *arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "claude-opus-5"], "no key for claude-opus-5. Next: set ANTHROPIC_API_KEY"),
        (["--model", "openai:x"], "no key for x. Next: set OPENAI_API_KEY"),
        (["--model", "abacus"], "there is no model 'abacus'"),
        (["--model", "scripted:none.json"], "none.json cannot be read"),
        (["--model", "scripted:model.py"], "model.py is no script"),
        (["--model", "library", "--max-time", "soon"], "it is no time"),
        (["--model", "library", "--price", "input"], "it is no price"),
    ],
)
def test_a_run_that_cannot_begin_is_refused_with_what_to_do(agent, sentence, options, words):
    assert words in sentence(agent("run", "model.py", *options), 2)


def test_a_server_that_is_not_there_is_said_to_be_missing(agent, sentence):
    ended = agent("run", "model.py", "--model", "library", "--server", "http://127.0.0.1:9/mcp")
    assert "http://127.0.0.1:9/mcp" in sentence(ended, 6)


def test_there_is_nothing_to_resume_where_nothing_was_run(agent, sentence):
    assert "no agent was run" in sentence(agent("resume"), 2)


def test_a_dry_run_shows_what_would_be_said_and_begins_nothing(agent, tmp_path):
    options = [
        "--model",
        "library",
        "--price",
        "input=5",
        "--agents",
        "2",
        "--goal",
        "half the time",
    ]
    ended = agent("run", "model.py", *options, "--dry-run", "--output-format", "json")
    assert ended.returncode == 0, ended.stderr
    plan = json.loads(ended.stdout)
    assert "The loop:" in plan["system"]
    assert all("half the time" in words for words in plan["first_words"])
    assert len(plan["first_words"]) == 2
    assert "compile_and_validate" in plan["tools"]
    estimate = plan["first_input_tokens_estimated"]
    assert plan["first_input_dollars"] == pytest.approx(estimate * 5e-6)
    assert list(tmp_path.glob("project/agent/*")) == []


def test_a_package_that_is_missing_is_named_with_its_extra():
    program = (
        "import sys; sys.modules['anthropic'] = None\n"
        "from kernelforge_agent.models.anthropic_messages import AnthropicModel\n"
        "from kernelforge_agent.errors import ExtraMissing\n"
        "try:\n    AnthropicModel('claude-opus-5')\n"
        "except ExtraMissing as error:\n    print(error, error.exit_code)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout.strip().endswith("Next: pip install 'kernelforge-mcp[agent]'. 2")


@pytest.fixture
def old(tmp_path):
    """A job and its surroundings, with a server that counts no usage."""
    (tmp_path / "server.py").write_text(OLD_SERVER)
    (tmp_path / "script.json").write_text('[{"calls": [{"tool": "get_status"}]}, {"say": "Done."}]')
    job = Job(
        task=Task(model="m.py", device="cpu", goal="be quick", cast="m.cast"),
        model=f"scripted:{tmp_path / 'script.json'}",
        budget=Budget(),
        price=Price(per_million={}),
    )
    around = Around(
        folder=tmp_path / "session",
        child=StdioServerParameters(command=sys.executable, args=[str(tmp_path / "server.py")]),
        token="",
        key="",
        listener=lambda _: None,
    )
    return job, around


async def test_a_server_that_counts_no_usage_is_served_without(old):
    result = await run(*old)
    assert (result.exit_code, result.document["report"]) == (3, "Done.")
    assert result.document["device_s"] is None
    assert '"type":"usage"' not in (old[1].folder / "1.jsonl").read_text()


async def test_device_time_is_no_bound_on_a_server_that_counts_none(old):
    job, around = old
    with pytest.raises(NotPossible, match="does not count the time of devices"):
        await run(replace(job, budget=Budget(gpu_s=60)), around)


async def test_a_server_that_ends_in_the_middle_is_said_to_be_gone(old, tmp_path):
    job, around = old
    dying = OLD_SERVER.replace("    return {", "    import os\n    calls.append(1)\n"
        "    if len(calls) > 1:\n        os._exit(1)\n    return {")  # fmt: skip
    (tmp_path / "server.py").write_text("calls = []\n" + dying)
    result = await run(job, around)
    assert (result.exit_code, result.document["outcome"]) == (6, "failed")
    assert "kernelforge agent resume" in result.document["errors"][0]


async def test_a_profile_is_read_for_one_bottleneck(old, tmp_path):
    job, around = old
    call = {"tool": "profile_node", "arguments": {"node_id": "n1"}}
    (tmp_path / "script.json").write_text(json.dumps([{"calls": [call]}, {"say": "Done."}]))
    await run(job, around)
    lines = (around.folder / "1.jsonl").read_text().splitlines()
    (brief,) = (r["brief"] for r in map(json.loads, lines) if r["type"] == "tool_result")
    assert "Read this profile of n1 for ONE bottleneck." in brief
    assert "Found: n1: memory-bound, 41 % of peak." in brief
    assert "Floor: not read yet: get_card of v1 tells" in brief
