"""A search as agents see it: what they are told, how often they may mend, where a budget goes."""

import json
from contextlib import asynccontextmanager

import pytest
from mcp.client import Client

from kernelforge_engine.engine import Engine
from kernelforge_server import settings
from kernelforge_server.app import build_server

MODEL = """
import torch


def make_model():
    return lambda x: torch.roll(x, 1) + torch.relu(x)


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(64, 64)
"""
ROLL = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[(i + SHIFT) % n] = x[i];
}
// NAME
"""


def roll(name, shift=1):
    return ROLL.replace("NAME", name).replace("SHIFT", str(shift))


class Agent:
    """Calls tools; an answer is its document, a refusal its words."""

    def __init__(self, client):
        self._client = client

    async def call(self, tool, **arguments):
        answer = await self._client.call_tool(tool, arguments)
        text = answer.content[0].text
        return text if answer.is_error else json.loads(text)

    async def leased(self, variant, **arguments):
        return (await self.call("mcts_select", variant_id=variant, **arguments))["data"]

    async def proposed(self, variant, lease, source, note=""):
        return await self.call(
            "compile_and_validate",
            variant_id=variant,
            lease_id=lease["lease_id"],
            source=source,
            note=note,
            wait_s=240,
        )

    async def timed(self, variant, lease, source, note):
        node = (await self.proposed(variant, lease, source, note))["data"]["node_id"]
        await self.call("benchmark", node_id=node, wait_s=240)
        return node

    async def candidate_us(self, node):
        found = await self.call("get_node", node_id=node)
        return found["data"]["node"]["timing"]["candidate_us"]


@asynccontextmanager
async def captured(tmp_path, monkeypatch):
    """An agent on a project in `tmp_path`/project, and the variant of roll."""
    monkeypatch.setattr("sys.stdout", None)  # the server replaces it; the test's own comes back
    (tmp_path / "model.py").write_text(MODEL)
    engine = Engine.open(settings.resolve(tmp_path / "project"))
    async with Client(build_server(engine)) as client:
        agent = Agent(client)
        await agent.call("capture_model", model=f"{tmp_path}/model.py", wait_s=240)
        cards = (await agent.call("list_cards"))["data"]["cards"]
        (card,) = [c for c in cards if c["operator"] == "aten::roll"]
        yield agent, card["targets"][0]


async def test_an_author_is_told_what_was_tried_and_the_search_is_made_again_from_its_record(
    tmp_path, monkeypatch, kernelforge
):
    async with captured(tmp_path, monkeypatch) as (agent, variant):
        root = await agent.leased(variant)
        assert (root["tried"], root["failed"], root["repairs"]) == ([], [], 3)
        first = await agent.timed(variant, root, roll("a"), "one loop")
        chain = await agent.leased(variant, policy="linear")
        assert [row["id"] for row in chain["line"]] == [first] == [chain["parent"]["id"]]
        (step,) = chain["line"]
        assert step["idea"] == "one loop"
        assert step["speedup"] == pytest.approx(step["gain"])
        second = await agent.timed(variant, chain, roll("b"), "the same " + "again " * 40)
        deeper = await agent.leased(variant, policy="linear")
        assert [row["id"] for row in deeper["line"]] == [first, second]
        assert deeper["line"][0]["below"] == 1
        assert len(deeper["line"][1]["idea"]) <= 160
        two, other = await agent.leased(variant, policy="beam"), await agent.leased(variant)
        assert two["parent"]["id"] == root["parent"]["id"]
        assert [row["id"] for row in two["tried"]] == [first]
        times = {node: await agent.candidate_us(node) for node in (first, second)}
        fastest = min(times, key=times.get)
        known = two["best"]["id"] if "best" in two else None
        assert known in (fastest, None)  # None where the captured eager was faster still
        assert other["lease_id"] != two["lease_id"]
    again = kernelforge("tree", "--variant", variant, "--replay", "--json")
    found = json.loads(again.stdout)
    assert (again.returncode, found["choices"], found["differing"]) == (0, 5, [])
    said = kernelforge("tree", "--variant", variant, "--replay").stdout
    assert said.splitlines() == [
        "5 of 5 choices came out the same.",
        "The tree of 3 nodes that the journal gives is the one on record.",
    ]


async def test_a_failed_proposal_is_mended_so_often_and_then_the_lease_ends(tmp_path, monkeypatch):
    async with captured(tmp_path, monkeypatch) as (agent, variant):
        lease = await agent.leased(variant, max_repairs=1)
        wrong = await agent.proposed(variant, lease, roll("a", 2), "shifted twice")
        assert (wrong["status"], wrong["data"]["repairs_left"]) == ("wrong_values", 1)
        assert wrong["next"][0].startswith("compile_and_validate(")
        last = await agent.proposed(variant, lease, roll("b", 3))
        assert last["data"]["repairs_left"] == 0
        assert [step.partition("(")[0] for step in last["next"]] == ["mcts_select"]
        refused = await agent.proposed(variant, lease, roll("c"))
        assert "has used up its repairs" in refused
        following = await agent.leased(variant)
        assert following["parent"]["visits"] == 1
        assert [row["note"] for row in following["failed"] if "note" in row] == ["shifted twice"]


async def test_a_budget_is_planned_anew_after_every_result(tmp_path, monkeypatch, kernelforge):
    async with captured(tmp_path, monkeypatch) as (agent, variant):
        answer = await agent.call("list_cards", budget=4)
        plan = answer["data"]["plan"]
        assert sum(row["proposals"] for row in plan) == 4
        assert answer["next"][0] == f'mcts_select(variant_id="{plan[0]["variant_id"]}")'
        for row in answer["data"]["cards"]:
            assert row["model_at_most"] >= 1
        lease = await agent.leased(variant)
        await agent.proposed(variant, lease, roll("a", 2))
        rows = (await agent.call("list_cards", budget=4, budget_each="opt0"))["data"]["plan"]
        (spent,) = [row for row in rows if row["variant_id"] == variant]
        assert (spent["proposals"], spent["tried"]) == (0, 1)
        assert spent["why_none"] == "its limit of 1 is used"
        card = answer["data"]["cards"][0]["id"]
        amdahl = (await agent.call("get_card", card_id=card))["data"]["amdahl"]
        assert "of the model's time x (1 - 1/" in amdahl
        refused = await agent.call("list_cards", budget_each="opt7")
        assert "Next: use a number from 1 on" in refused
    shown = kernelforge("cards", "--budget", "4", "--each", "opt0", "--json")
    assert {row["variant_id"]: row["proposals"] for row in json.loads(shown.stdout)["plan"]}[
        variant
    ] == 0
    table = kernelforge("cards", "--budget", "4").stdout
    assert variant in table
    assert "left to save" in table
