"""What an agent is shown of a capture: facts, operators, regions and families, in few tokens."""

import json
from collections.abc import AsyncIterator

import pytest
from mcp.client import Client

from kernelforge_engine.engine import Engine
from kernelforge_engine.launch.header import parse_source
from kernelforge_server import settings
from kernelforge_server.app import build_server

SHORT, LONG = 2_400, 16_000  # characters of 600 and 4,000 tokens
MODEL = """
import torch


class ScaledNorm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, size))
        self.variance_epsilon = 1e-6

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = ScaledNorm(64)

    def forward(self, x):
        total = torch.randn_like(x).sum()
        for rows in (3, 4, 5, 9, 12, 16, 20, 24):
            total = total + torch.nn.functional.gelu(x[:rows]).sum()
        return total + self.norm(x).sum()


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(24, 64)


def raising():
    def run(x):
        y = torch.relu(x)
        raise RuntimeError("the cache is full")

    return run
"""
ALL = ["format", "starting_points", "skeleton", "reference", "inside", "tree", "all_variants"]


@pytest.fixture
async def client(tmp_path, monkeypatch) -> AsyncIterator[Client]:
    monkeypatch.setattr("sys.stdout", None)  # the server replaces it; the test's own comes back
    (tmp_path / "model.py").write_text(MODEL)
    engine = Engine.open(settings.resolve(tmp_path / "p"))
    async with Client(build_server(engine)) as opened:
        yield opened


async def _answer(client: Client, tool: str, most: int = SHORT, **arguments):
    answer = await client.call_tool(tool, arguments)
    text = answer.content[0].text
    assert not answer.is_error, text
    assert len(text) <= most, (len(text), text)
    return json.loads(text)


async def _captured(client: Client, tmp_path, factory: str = "make_model"):
    return await _answer(
        client, "capture_model", model=f"{tmp_path}/model.py:{factory}", wait_s=240
    )


async def test_a_capture_is_told_in_facts_and_the_cards_with_the_most_to_gain(client, tmp_path):
    captured = await _captured(client, tmp_path)
    assert captured["status"] == "ok"
    data = captured["data"]
    is_told = data.get("bound") in ("launch-bound", "memory-bound", "compute-bound")
    assert is_told != ("doubt" in data)  # of a machine that is busy nothing is told
    assert ("means" in data) == is_told
    assert data["busy_share"] == pytest.approx(data["busy_us"] / data["wall_us"], rel=0.01)
    assert "it is random" in data["not_targets"]
    gains = [card["gain"] for card in data["cards"]]
    assert gains == sorted(gains, reverse=True)
    assert all(card["targets"] for card in data["cards"])


async def test_a_model_that_raises_half_way_is_recorded_in_part(client, tmp_path):
    captured = await _captured(client, tmp_path, "raising")
    assert captured["status"] == "partial"
    assert "the cache is full" in captured["summary"]
    assert "the cache is full" in captured["data"]["error"]
    assert [card["operator"] for card in captured["data"]["cards"]] == ["aten::relu"]


async def test_cards_are_sorted_narrowed_and_paged(client, tmp_path):
    await _captured(client, tmp_path)
    shares = await _answer(client, "list_cards", sort="share", kind="operator", limit=3)
    found = [card["share"] for card in shares["data"]["cards"]]
    assert found == sorted(found, reverse=True)
    assert {card["kind"] for card in shares["data"]["cards"]} == {"operator"}
    assert "note" not in shares["data"]
    following = shares["next"][-1]
    assert following == (
        'list_cards(capture_id="c1", sort="share", kind="operator", limit=3, offset=3)'
    )
    rest = await _answer(client, "list_cards", sort="share", kind="operator", limit=3, offset=3)
    assert rest["data"]["cards"][0]["share"] <= found[-1]


async def test_a_region_is_shown_with_what_it_runs(client, tmp_path):
    await _captured(client, tmp_path)
    listed = (await _answer(client, "list_cards", kind="region"))["data"]
    assert "overlap" in listed["note"]
    (norm,) = [c for c in listed["cards"] if c["operator"] == "region::ScaledNorm"]
    assert norm["kind"] == "region"
    assert any(name.startswith("aten::") for name in norm["inside"])
    sections = ["reference", "skeleton", "inside"]
    shown = (await _answer(client, "get_card", LONG, card_id=norm["id"], sections=sections))["data"]
    buffers = shown["header"]["buffers"]
    assert list(buffers) == ["in0", "in1", "out0"]
    assert buffers["in0"] == "f32[24, 64] hidden_states"
    assert buffers["in1"] == "f32[64] weight"
    assert shown["header"]["names"]["variance_epsilon"] == 1e-6
    assert "def forward(self, hidden_states)" in shown["reference"]["source"]
    assert shown["reference"]["steps"][-1].startswith("out0 = v")
    assert any(line.endswith("= aten::rsqrt(v4)") for line in shown["reference"]["steps"])
    assert sum(row["calls"] * row["us_each"] for row in shown["inside"]) > 0
    assert parse_source(shown["skeleton"], "cpu").plan.launches


async def test_a_family_is_shown_with_its_sizes(client, tmp_path):
    await _captured(client, tmp_path)
    cards = (await _answer(client, "list_cards", kind="operator"))["data"]["cards"]
    (gelu,) = [card for card in cards if card["operator"] == "aten::gelu"]
    assert (len(gelu["targets"]), gelu["target_count"]) == (3, 8)
    (family,) = gelu["families"]
    shown = (await _answer(client, "get_card", card_id=gelu["id"]))["data"]
    assert shown["header"]["variant_id"] == family
    assert list(shown["family"]["symbols"].values()) == ["3 to 24"]
    assert shown["family"]["varying"] == {"in0.shape[0]": "s0", "out0.shape[0]": "s0"}
    assert "expressions" in shown["family"]["hint"]
    assert shown["left_out"]
    detailed = await _answer(client, "get_card", LONG, card_id=gelu["id"], sections=ALL)
    assert len(detailed["data"]["family"]["members"]) == 8
    assert len(detailed["data"]["variants"]) == 8
    assert detailed["data"]["family"]["members"][0].startswith("s0 = 3: 1 call, ")


async def test_a_region_and_a_family_take_candidates_like_any_variant(client, tmp_path):
    await _captured(client, tmp_path)
    cards = (await _answer(client, "list_cards", limit=100, most=LONG))["data"]["cards"]
    ids = {card["operator"]: card["id"] for card in cards}
    for card_id in (ids["region::ScaledNorm"], ids["aten::gelu"]):
        shown = await _answer(client, "get_card", LONG, card_id=card_id, sections=["skeleton"])
        variant = shown["data"]["header"]["variant_id"]
        lease = (await _answer(client, "mcts_select", variant_id=variant))["data"]["lease_id"]
        verdict = await _answer(
            client,
            "compile_and_validate",
            variant_id=variant,
            source=shown["data"]["skeleton"],
            lease_id=lease,
            wait_s=240,
        )
        assert verdict["status"] == "wrong_values"
        attempt = verdict["data"]["attempt_id"]
        kept = (await _answer(client, "get_node", LONG, node_id=attempt))["data"]
        assert kept["source"] == shown["data"]["skeleton"]
        tree = await _answer(client, "get_card", LONG, card_id=card_id, sections=["tree"])
        assert [row["id"] for row in tree["data"]["attempts"]] == [attempt]


async def test_no_card_is_longer_than_an_agent_can_read(client, tmp_path):
    await _captured(client, tmp_path)
    cards = (await _answer(client, "list_cards", limit=100, most=LONG))["data"]["cards"]
    for sections in ([], *([name] for name in ALL), ALL):
        most = LONG if sections else SHORT
        for card in cards:
            await _answer(client, "get_card", most, card_id=card["id"], sections=sections)
