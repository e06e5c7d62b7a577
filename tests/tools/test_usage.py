"""What clients report of their models, and what it comes to, through the official client."""

import json

import pytest
from mcp.client import Client

from kernelforge_engine.engine import Engine
from kernelforge_server import settings
from kernelforge_server.app import build_server

pytestmark = pytest.mark.calm

RELU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
"""
OWN = """
[models.house-model]
per_million = { input = 2.0, output = 8.0 }
[models.claude-haiku-4-5]
read = 2026-01-02
per_million = { input = 100.0 }
"""


@pytest.fixture
async def client(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)  # the server replaces it; the test's own comes back
    async with _opened(tmp_path) as opened:
        yield opened


def _opened(tmp_path):
    return Client(build_server(Engine.open(settings.resolve(tmp_path / "p"))))


async def _call(client, tool, **arguments):
    answer = await client.call_tool(tool, arguments)
    text = answer.content[0].text
    assert not answer.is_error, text
    assert len(text) <= 2_400
    return json.loads(text)


async def _refused(client, **arguments):
    answer = await client.call_tool("record_usage", arguments)
    assert answer.is_error
    assert "Next:" in answer.content[0].text
    return answer.content[0].text


async def _spent(client):
    return (await _call(client, "get_status"))["data"].get("usage")


async def test_a_report_counts_once_however_often_its_call_is_made(client):
    report = {
        "key": "call-1",
        "model": "claude-opus-5",
        "tokens": {"input": 1000, "output": 200, "cache_read": 10_000},
        "wall_s": 2.5,
    }
    first = await _call(client, "record_usage", **report)
    assert first["data"]["counted"]
    assert first["data"]["dollars"] == pytest.approx(0.005 + 0.005 + 0.005)
    again = await _call(client, "record_usage", **report)
    assert (again["data"]["usage_id"], again["data"]["counted"]) == ("u1", False)
    spent = await _spent(client)
    assert (spent["reports"], spent["calls"], spent["wall_s"]) == (1, 1, 2.5)
    assert spent["tokens"] == report["tokens"]
    assert list(spent["price_dates"]) == ["claude-opus-5"]


async def test_a_key_that_stands_for_another_report_counts_nothing(client):
    await _call(client, "record_usage", key="1", model="m", tokens={"input": 1})
    text = await _refused(client, key="1", model="m", tokens={"input": 2})
    assert "stands for another report, u1" in text
    assert (await _spent(client))["tokens"] == {"input": 1}


async def test_a_model_without_a_price_costs_an_unknown_amount_and_never_nothing(client):
    known = {"model": "claude-haiku-4-5-20251001", "tokens": {"output": 1_000_000}}
    await _call(client, "record_usage", key="1", **known)
    assert (await _spent(client))["dollars"] == pytest.approx(5.0)
    await _call(client, "record_usage", key="2", model="nobody-knows", tokens={"input": 10})
    spent = await _spent(client)
    assert (spent["dollars"], spent["known_dollars"]) == ("unknown", pytest.approx(5.0))
    assert spent["unknown_models"] == ["nobody-knows"]
    await _call(client, "record_usage", key="3", model="claude-opus-5", tokens={"video": 10})
    assert (await _spent(client))["unknown_models"] == ["claude-opus-5", "nobody-knows"]


async def test_dollars_that_a_client_knows_go_before_the_table(client):
    told = {"model": "nobody-knows", "tokens": {"input": 10}, "dollars": 0.25}
    await _call(client, "record_usage", key="1", **told)
    spent = await _spent(client)
    assert spent["dollars"] == 0.25
    assert "unknown_models" not in spent


async def test_a_price_table_of_ones_own_adds_models_and_replaces_others(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    (tmp_path / "prices.toml").write_text(OWN)
    monkeypatch.setenv("KERNELFORGE_PRICES", str(tmp_path / "prices.toml"))
    async with _opened(tmp_path) as client:
        await _call(client, "record_usage", key="1", model="house-model", tokens={"output": 500})
        tokens = {"input": 1000}
        await _call(client, "record_usage", key="2", model="claude-haiku-4-5", tokens=tokens)
        spent = await _spent(client)
    assert spent["dollars"] == pytest.approx(0.004 + 0.1)
    assert spent["price_dates"] == {"house-model": "not dated", "claude-haiku-4-5": "2026-01-02"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file"),
        ("models = 3", "models"),
        ("[models.m]\nper_million = { input = -1.0 }", "models.m.per_million.input"),
        ("[models.m]\nper_milion = {}", "models.m.per_million: Field required"),
        ("models =", "Invalid value"),
    ],
)
def test_a_price_table_that_is_none_is_refused_before_anything_is_done(
    kernelforge, sentence, monkeypatch, tmp_path, text, words
):
    path = tmp_path / "prices.toml"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("KERNELFORGE_PRICES", str(path))
    assert words in sentence(kernelforge("captures"), 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokens": {}}, "says nothing"),
        ({"tokens": {"input": -1}}, "tokens.input"),
        ({"tokens": {"input": 10**15}}, "tokens.input"),
        ({"tokens": {"Input": 1}}, "lower-case"),
        ({"tokens": {f"k{n}": 1 for n in range(9)}}, "9 kinds"),
        ({"key": ""}, "key = ''"),
        ({"key": "x" * 201}, "201 bytes"),
        ({"model": "\ud800"}, "half of a character"),
        ({"dollars": -0.5}, "dollars"),
        ({"wall_s": 1e300}, "wall_s"),
        ({"calls": 0}, "calls"),
        ({"about": "v1"}, "about = 'v1'"),
        ({"about": "n7"}, "no node 'n7'"),
        ({"about": "k7"}, "no card 'k7'"),
    ],
)
async def test_a_report_that_cannot_be_so_is_refused(client, changes, words):
    report = {"key": "1", "model": "m", "tokens": {"input": 1}, **changes}
    assert words in await _refused(client, **report)
    assert await _spent(client) is None


async def test_what_a_kernel_cost_holds_failures_and_the_seconds_of_the_device(
    client, user_projects
):
    model = str(user_projects / "small_mlp" / "model.py")
    await _call(client, "capture_model", model=model, wait_s=240)
    cards = (await _call(client, "list_cards"))["data"]["cards"]
    card = next(c["id"] for c in cards if c["operator"] == "aten::relu")
    variant = (await _call(client, "get_card", card_id=card))["data"]["header"]["variant_id"]
    asked = {"variant_id": variant, "wait_s": 240}
    wrong = RELU.replace("0.f : x[i]", "1.f : x[i]")
    attempt = (await _call(client, "compile_and_validate", source=wrong, **asked))["data"]
    node = (await _call(client, "compile_and_validate", source=RELU, **asked))["data"]["node_id"]
    costs = {"model": "m", "tokens": {"output": 100}, "arm": "greedy"}
    for n, about in enumerate((attempt["attempt_id"], node, card, None)):
        given = {"about": about} if about else {}
        found = await _call(client, "record_usage", key=str(n), dollars=1.0, **costs, **given)
        assert found["data"]["total"]["reports"] == {None: 4, card: 3}.get(about, 1)
    shown = (await _call(client, "get_card", card_id=card, sections=["usage"]))["data"]["usage"]
    assert (shown["reports"], shown["dollars"], shown["accepted_kernels"]) == (3, 3.0, 0)
    assert "dollars_per_accepted" not in shown
    judged = shown["device_s"]["cpu"]
    assert judged > 0
    for _ in range(6):  # on a busy machine a timing may be inconclusive
        timed = await _call(client, "benchmark", node_id=node, wait_s=240)
        if timed["status"] == "faster":
            break
    spent = await _spent(client)
    assert spent["device_s"]["cpu"] > judged
    if timed["status"] != "faster":
        pytest.fail(timed["summary"])
    assert (spent["accepted_kernels"], spent["dollars_per_accepted"]) == (1, 4.0)
    assert spent["tokens_per_accepted"] == 400
    (arm,) = (await _call(client, "get_status"))["data"]["arms"]
    assert (arm["arm"], arm["reports"], arm["accepted_kernels"]) == ("greedy", 4, 1)


async def test_what_was_spent_stays_spent_when_its_node_is_removed(
    kernelforge, client, tmp_path, user_projects, monkeypatch
):
    model = str(user_projects / "small_mlp" / "model.py")
    await _call(client, "capture_model", model=model, wait_s=240)
    cards = (await _call(client, "list_cards"))["data"]["cards"]
    await _call(
        client, "record_usage", key="1", model="m", tokens={"input": 7}, about=cards[0]["id"]
    )
    monkeypatch.setenv("KERNELFORGE_PROJECT", str(tmp_path / "p"))
    removed = kernelforge("captures", "delete", "c1")
    assert removed.returncode == 0, removed.stderr
    assert (await _spent(client))["tokens"] == {"input": 7}
