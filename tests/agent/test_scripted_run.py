"""The command itself, from a model to a cast, through processes that are killed on the way."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from parts import BRANCH, ROLL, WRONG

from kernelforge_engine.cast.manifest import read

pytestmark = pytest.mark.calm

MODEL = """import torch


def make_model():
    return lambda x: torch.roll(x, 1)


def make_inputs():
    return torch.ones(8, 8)
"""


def of(result, at):
    return {"result": result, "at": at}


def call(tool, name="", **arguments):
    return {"tool": tool, "name": name, "arguments": arguments}


def proposal(source, note):
    under = {
        "variant_id": of("lease", "/data/variant_id"),
        "lease_id": of("lease", "/data/lease_id"),
    }
    return call("compile_and_validate", "node", source=source, note=note, **under)


CARD = [
    {"say": "First the model.", "calls": [call("capture_model", model="model.py")]},
    {"calls": [call("list_cards", "cards")]},
    {"calls": [call("get_card", "card", card_id=of("cards", "/data/cards/0/id"))]},
]
LEASE = {"calls": [call("mcts_select", "lease", variant_id=of("card", "/data/header/variant_id"))]}
TIME = {"calls": [call("benchmark", node_id=of("node", "/data/node_id"))]}
# Two nodes below eager are what it takes for one of them to be revised.
SCRIPT = [
    *CARD,
    LEASE,
    {"calls": [proposal(WRONG, "seven times too much")]},
    {"calls": [proposal(BRANCH, "no modulo")]},
    TIME,
    LEASE,
    {"calls": [proposal(ROLL, "one loop")]},
    {**TIME, "until": "faster", "at_most": 6},  # on a busy machine a timing may be inconclusive
    LEASE,
    {"calls": [call("export_cast", path="model.cast", measure=False)]},
    {"say": "roll is faster."},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    return tmp_path


def records(folder: Path, author: int = 1) -> list[dict]:
    (found,) = folder.glob(f".kernelforge/agent/*/{author}.jsonl")
    whole = found.read_bytes().rpartition(b"\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def started(command, folder, *arguments):
    return subprocess.Popen(
        [*command, "agent", *arguments], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def until_written(folder: Path, process, kind: str, number: int) -> None:
    """Wait until so many records of a kind are in the transcript."""
    deadline = time.monotonic() + 120
    while True:
        if next(folder.glob(".kernelforge/agent/*/1.jsonl"), None):
            written = [r for r in records(folder) if r["type"] == kind]
            if len(written) >= number:
                return
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.timeout(600)
async def test_an_agent_that_is_killed_goes_on_to_a_cast(folder, python_command, processes):
    killed = started(python_command, folder, "run", "model.py", "--model", "scripted:script.json")
    until_written(folder, killed, "message", 5)  # the fifth turn wants a candidate judged
    below = processes.below(killed.pid)
    assert below
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    await processes.gone(below)
    before = records(folder)
    assert [r["tool"] for r in before if r["type"] == "tool_result"][-1] == "mcts_select"

    resumed = started(python_command, folder, "resume", "--output-format", "json")
    said, words = resumed.communicate(timeout=400)
    assert resumed.returncode == 0, words
    document = json.loads(said)
    assert (document["outcome"], document["report"]) == ("finished", "roll is faster.")
    assert (document["candidates"], document["valid"]) == (3, 2)
    assert all(found["low"] > 1 for found in document["faster"].values())
    (cast,) = document["casts"]
    (entry,) = read(Path(cast)).entries
    assert entry.node_id in document["faster"]
    _every_call_is_answered_once(records(folder), before)
    _steps_are_briefed([r for r in records(folder) if r["type"] == "tool_result"])


def _every_call_is_answered_once(after: list[dict], before: list[dict]) -> None:
    assert after[: len(before)] == before
    called = [c["id"] for r in after if r["type"] == "message" for c in r["calls"]]
    answered = [r["id"] for r in after if r["type"] == "tool_result"]
    assert called == answered
    assert len(set(called)) == len(called)
    assert [r["type"] for r in after].count("resume") == 1


def _steps_are_briefed(results: list[dict]) -> None:
    first, second, third = (r["brief"] for r in results if r["tool"] == "mcts_select")
    assert "Write a first version of v1." in first
    assert "Lineage: nothing was tried yet" in first
    assert "eager takes" in first
    assert "no modulo: " in second  # the idea that was tried before, and what it gave
    assert "Revise n" in third
    wrong, *valid = (r for r in results if r["tool"] == "compile_and_validate")
    assert [r["status"] for r in (wrong, *valid)] == ["wrong_values", "valid", "valid"]
    assert "This was failure 1 in a row of v1" in wrong["brief"]
    assert [r["brief"] for r in valid] == ["", ""]


async def test_authors_at_work_at_once_share_a_capture_and_a_tree(folder, python_command):
    (folder / "script.json").write_text(json.dumps([*CARD, LEASE, {"say": "Enough."}]))
    running = started(
        python_command, folder, "run", "model.py", "--model", "scripted:script.json",
        "--agents", "2", "--output-format", "stream-json",
    )  # fmt: skip
    said, words = running.communicate(timeout=240)
    assert running.returncode == 3, words
    events = [json.loads(line) for line in said.splitlines()]
    assert events[-1]["type"] == "result"
    assert events[-1]["report"] == "Enough.\n\nEnough."
    for author in (1, 2):
        told = next(r["text"] for r in records(folder, author) if r["type"] == "reply")
        assert f"You are author {author} of 2" in told
    answers = {
        author: {r["tool"]: r["answer"]["data"] for r in records(folder, author)
                 if r["type"] == "tool_result"}
        for author in (1, 2)
    }  # fmt: skip
    assert {answers[author]["capture_model"]["capture_id"] for author in answers} == {"c1"}
    leases = [answers[author]["mcts_select"]["lease_id"] for author in answers]
    assert len(set(leases)) == 2
    assert {event.get("author") for event in events[:-1]} == {"1", "2"}


async def test_an_interrupt_ends_a_run_that_can_go_on(folder, python_command, processes):
    running = started(
        python_command, folder, "run", "model.py", "--model", "scripted:script.json",
        "--output-format", "json",
    )  # fmt: skip
    until_written(folder, running, "message", 1)
    below = processes.below(running.pid)
    running.send_signal(signal.SIGINT)
    said, words = running.communicate(timeout=120)
    assert running.returncode == 130, words
    document = json.loads(said)
    assert (document["outcome"], document["turns"]) == ("interrupted", 1)
    await processes.gone(below)


@pytest.mark.timeout(600)
def test_the_library_is_tried_without_any_model(folder, python_command):
    (folder / "model.py").write_text(MODEL.replace("torch.roll(x, 1)", "torch.relu(x)"))
    running = started(
        python_command, folder, "run", "model.py", "--model", "library", "--output-format", "json",
        "-o", "library.cast",
    )  # fmt: skip
    said, words = running.communicate(timeout=400)
    document = json.loads(said)
    assert running.returncode == (0 if document["faster"] else 3), words
    assert document["outcome"] == "finished"
    assert document["dollars"] == 0
    assert document["candidates"] == document["valid"] > 0
    assert f"{document['candidates']} kernels of the library" in document["report"]
    # An export measures the model, and writes nothing where that is not faster with the kernel.
    assert document["casts"] == [str(path) for path in folder.glob("*.cast")]
