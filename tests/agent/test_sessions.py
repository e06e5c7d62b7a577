"""What earlier runs left: listed, shown, read, and gone on from."""

import json

import pytest

STATUS = {"tool": "get_status"}
TOKENS = {"input": 1000, "output": 100}
SCRIPT = [
    {"say": "A look.", "calls": [STATUS], "tokens": TOKENS},
    {"say": "Another.", "calls": [STATUS], "tokens": TOKENS},
    {"say": "Nothing to do."},
]
PRICE = ("--price", "input=10,output=100")
TURN_DOLLARS = 0.02


@pytest.fixture(scope="module")
def told():
    """What a command said as one document."""
    return lambda ended: json.loads(ended.stdout)


@pytest.fixture
def agent(kernelforge, tmp_path):
    (tmp_path / "model.py").write_text("")
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    return lambda *arguments: kernelforge("agent", *arguments)


@pytest.fixture
def cut(agent, told):
    """A run that its budget ended after one turn."""
    options = ("--max-turns", 1, *PRICE, "--arm", "opt0", "--output-format", "json")
    ended = agent("run", "model.py", "--model", "scripted:script.json", *options)
    assert ended.returncode == 4, ended.stderr
    return told(ended)


def files(tmp_path, session):
    folder = tmp_path / "project" / "agent" / session
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_run_is_listed_shown_and_read(agent, told, cut, tmp_path):
    name = cut["session"]
    (row,) = told(agent("list", "--output-format", "json"))["sessions"]
    assert (row["session"], row["state"], row["turns"]) == (name, "budget", 1)
    # As a run leaves it that was killed before its second author began.
    (tmp_path / "project" / "agent" / name / "2.jsonl").touch()
    shown = told(agent("show", "--output-format", "json"))
    assert shown == row
    assert (shown["tokens"], shown["dollars"]) == (TOKENS, TURN_DOLLARS)
    text = agent("show", name).stdout
    assert "arm:         opt0" in text
    assert "budget:      turns 1" in text
    read = agent("transcript", name).stdout
    assert "## Turn 1\n\nA look.\n\n**get_status**" in read
    assert "*Ended: budget.*" in read
    lines = agent("transcript", name, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["type"] for line in lines][:3] == ["init", "reply", "message"]
    assert {json.loads(line)["author"] for line in lines} == {"1"}
    assert name in agent("list").stdout


def test_a_session_that_is_not_there_is_answered_with_those_there_are(agent, sentence):
    for command in ("show", "transcript", "resume", "fork"):
        assert "no agent was run" in sentence(agent(command), 2)
    assert agent("list").stdout == "No agent was run in this project.\n"


def test_a_fork_goes_on_from_a_run_that_stays_as_it_is(agent, told, cut, sentence, tmp_path):
    before = files(tmp_path, cut["session"])
    forked = told(agent("fork", cut["session"], "--goal", "half the time", "--arm", "opt5",
                        "--max-turns", 5, "--output-format", "json"))  # fmt: skip
    assert (forked["outcome"], forked["report"]) == ("finished", "Nothing to do.")
    assert forked["session"] != cut["session"]
    assert (forked["turns"], forked["dollars"]) == (2, TURN_DOLLARS)  # its own, not the other's
    assert files(tmp_path, cut["session"]) == before
    shown = told(agent("show", forked["session"], "--output-format", "json"))
    assert (shown["forked_from"], shown["job"]["arm"]) == (cut["session"], "opt5")
    read = agent("transcript", forked["session"]).stdout
    assert "A look." in read
    assert f"You go on from run {cut['session']} as a run of its own" in read
    assert "Goal: half the time" in read
    told(agent("resume", cut["session"], "--max-turns", 5, "--output-format", "json"))
    listed = told(agent("list", "--output-format", "json"))["sessions"]
    assert [(row["session"], row["turns"], row["state"]) for row in listed] == [
        (forked["session"], 2, "finished"), (cut["session"], 3, "finished"),
    ]  # fmt: skip
    # A finished run is gone on from as well; its last words are answered with the new goal.
    third = told(agent("fork", "--output-format", "json"))
    assert (third["turns"], third["outcome"]) == (1, "finished")
    text = sentence(agent("show", "yesterday"), 2)
    assert f"this project has {third['session']}, {forked['session']}, {cut['session']}" in text


def test_a_run_that_was_killed_before_its_first_words_begins_with_them(agent, told, cut, tmp_path):
    path = tmp_path / "project" / "agent" / cut["session"] / "1.jsonl"
    path.write_bytes(path.read_bytes().partition(b"\n")[0] + b'\n{"type":"reply","to')
    ended = agent("resume", "--max-turns", 5, "--output-format", "json")
    assert told(ended)["report"] == "Nothing to do."
    assert told(ended)["turns"] == 3
