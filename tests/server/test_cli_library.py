"""The user's library: what one project accepted is where another begins, and is judged anew."""

import json
import subprocess
import sys

import pytest
from mcp.client import Client

from kernelforge_engine.engine import Engine
from kernelforge_server import settings
from kernelforge_server.app import build_server

pytestmark = pytest.mark.calm

OTHER = (
    "import torch\n\n\ndef make_model():\n    return lambda x: torch.roll(x, 1)\n\n\n"
    "def make_inputs():\n    return torch.ones(4, 6)\n"
)


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELFORGE_LIBRARY", str(tmp_path / "library"))
    return tmp_path / "library"


@pytest.fixture
def stocked(library, forged):
    """The library with what the cast of a project holds."""
    (added,) = json.loads(forged.run("library", "add", "good.cast", "--json").stdout)["added"]
    return added


def listed(forged, *options):
    return json.loads(forged.run("library", "list", "--json", *options).stdout)


def test_what_is_exported_is_kept_with_its_evidence_and_no_values(forged, library):
    ended = forged.run("export", "-o", "kept.cast", "--node", forged.node, "--no-measure")
    assert "1 kernel went into the library of accepted kernels." in ended.stdout, ended.stderr
    (kernel,) = listed(forged, "--operator", "aten::roll")["kernels"]
    assert (kernel["operator"], kernel["outcome"], kernel["tier"]) == (
        "aten::roll",
        "faster",
        "full",
    )
    assert kernel["low"] > 1
    assert (kernel["node_id"], kernel["call"][:9]) == (forged.node, "f32[8, 8]")
    (file,) = library.rglob("*.json")
    assert "samples" not in file.read_text()
    shown = forged.run("library", "show", kernel["id"][:6])
    assert shown.stdout.endswith((forged.folder / "roll.cpp").read_text())
    again = json.loads(forged.run("library", "add", forged.node, "--json").stdout)["added"]
    assert [one["id"] for one in again] == [kernel["id"]]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory, command_of):
    """A folder with a project of its own, in which the same operator runs at another size."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "model.py").write_text(OTHER)
    run = command_of(folder)
    cards = json.loads(run("capture", "model.py", "--json").stdout)["cards"]
    assert [card["operator"] for card in cards] == ["aten::roll"]
    return folder, run


async def test_an_agent_is_shown_where_it_comes_from(stocked, elsewhere, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)  # the server replaces it; the test's own comes back
    folder, _ = elsewhere
    engine = Engine.open(settings.resolve(folder / ".kernelforge"))
    async with Client(build_server(engine)) as client:
        listed = await client.call_tool("list_cards", {})
        (card,) = listed.structured_content["data"]["cards"]
        selected = await client.call_tool("mcts_select", {"variant_id": card["targets"][0]})
        shown = await client.call_tool(
            "get_card", {"card_id": card["id"], "sections": ["starting_points"]}
        )
    assert "accepted before" in selected.structured_content["summary"]
    assert selected.structured_content["next"][0].startswith(f'get_card(card_id="{card["id"]}"')
    (point,) = shown.structured_content["data"]["starting_points"]
    assert point["name"] == f"own_{stocked['id'][:12]}"
    assert "for f32[8, 8]" in point["origin"]
    assert "y[(i + 1) % n] = x[i]" in point["source"]


def test_another_project_starts_from_it_and_judges_it_anew(stocked, elsewhere, forged):
    _, run = elsewhere
    report = json.loads(run("optimize", "--budget", "1", "--json").stdout)
    (row,) = report["rows"]
    assert (report["proposals"], report["valid"]) == (1, 1)
    tree = json.loads(run("tree", "--variant", row["variant_id"], "--json").stdout)
    assert len(tree["nodes"]) == 2
    origin = f"own_{stocked['id'][:12]}: your library: {forged.node} of good"
    assert tree["nodes"][-1]["note"].startswith(origin)


def test_a_damaged_file_is_named_and_left_out_and_can_be_removed(forged, stocked, library):
    (good,) = library.rglob("*.json")
    torn = good.with_name("deadbeef.json")
    torn.write_bytes(good.read_bytes()[:100])
    other = good.with_name("0" * 64 + ".json")
    other.write_bytes(good.read_bytes())
    found = listed(forged)
    assert [kernel["id"] for kernel in found["kernels"]] == [stocked["id"]]
    why = {one["path"]: one["why"] for one in found["damaged"]}
    assert "not have the form" in why[str(torn)]
    assert "not what it is named after" in why[str(other)]
    good.write_text(json.dumps(json.loads(good.read_text()) | {"accepted_at": 1e20}))
    (late,) = (one for one in listed(forged)["damaged"] if one["path"] == str(good))
    assert "which is no time" in late["why"]
    assert forged.run("library", "remove", "dead").returncode == 0
    assert not torn.exists()
    assert other.exists()


def test_two_processes_may_add_the_same_at_once(forged, library):
    command = [sys.executable, "-m", "kernelforge_server", "library", "add", "good.cast"]
    running = [subprocess.Popen(command, cwd=forged.folder) for _ in range(2)]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    assert (
        len(listed(forged)["kernels"]) == len([f for f in library.rglob("*") if f.is_file()]) == 1
    )


def test_what_cannot_be_done_is_said(forged, library, sentence, monkeypatch):
    assert "not accepted: the library has no such" in sentence(
        forged.run("library", "show", "ffff"), 2
    )
    assert "is eager itself" in sentence(forged.run("library", "add", "n1"), 2)
    monkeypatch.setenv("KERNELFORGE_LIBRARY", str(forged.folder / "roll.cpp"))
    assert "cannot be read: Not a directory" in sentence(forged.run("library", "list"), 1)
    monkeypatch.setenv("KERNELFORGE_LIBRARY", "off")
    assert "switched off" in sentence(forged.run("library", "list"), 2)
