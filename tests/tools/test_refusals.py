"""What an agent reads when it calls a tool wrongly; in both protocol eras."""

from collections.abc import AsyncIterator

import pytest
from mcp.client import Client

from kernelforge_engine.engine import Engine
from kernelforge_server import settings
from kernelforge_server.app import build_server


@pytest.fixture(params=["auto", "legacy"])
async def client(request, tmp_path, monkeypatch) -> AsyncIterator[Client]:
    monkeypatch.setattr("sys.stdout", None)  # the server replaces it; the test's own comes back
    engine = Engine.open(settings.resolve(tmp_path / "p"))
    async with Client(build_server(engine), mode=request.param) as opened:
        yield opened


async def _refusal(client: Client, tool: str, **arguments: object) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert answer.structured_content is None
    return answer.content[0].text


async def test_an_unknown_argument_is_named(client):
    text = await _refusal(client, "get_card", card_id="k1", cardid="k1")
    assert text.splitlines()[0] == "get_card has no argument `cardid`."
    assert "It takes card_id, variant_id, sections. Next:" in text


async def test_every_wrong_field_gets_a_line_of_its_own(client):
    text = await _refusal(client, "capture_model", wait_s=999, device=3)
    assert len(text.splitlines()) == 4
    assert "`model` is missing." in text
    assert "`wait_s` = 999 is not accepted" in text
    assert "pydantic" not in text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_cards", {}),
        ("list_cards", {"capture_id": "c7"}),
        ("get_card", {"variant_id": "v" + "9" * 30}),
        ("get_card", {"card_id": "k7"}),
        ("mcts_select", {"variant_id": "v7"}),
        ("benchmark", {"node_id": "n7"}),
        ("get_node", {"node_id": "n7"}),
        ("get_node", {"node_id": "a7"}),
        ("wait_job", {"job_id": "j7"}),
        ("compile_and_validate", {"variant_id": "v7", "source": "x", "lease_id": "l7"}),
        ("capture_model", {"model": "missing.py"}),
        ("export_cast", {"path": "x.cast"}),
        ("export_cast", {"path": "x.cast", "node_ids": ["n7"]}),
    ],
)
async def test_an_error_says_what_to_do_next(client, tool, arguments):
    text = await _refusal(client, tool, **arguments)
    assert "Next:" in text
    assert "Error executing tool" not in text


async def test_a_list_is_asked_for_in_words_of_the_wire(client):
    text = await _refusal(client, "export_cast", path="x.cast", node_ids="n1")
    assert "`node_ids` = 'n1' is not accepted: it should be a list." in text


async def test_a_policy_that_is_none_is_refused_with_those_there_are(client):
    text = await _refusal(client, "mcts_select", variant_id="v1", policy="best")
    assert "'spread', 'log', 'paper', 'greedy', 'linear' or 'beam'" in text


async def test_a_cast_needs_its_own_ending(client):
    assert "ends in .cast" in await _refusal(client, "export_cast", path="m.zip")


async def test_a_cast_that_exists_is_replaced_only_when_asked(client, tmp_path):
    (tmp_path / "x.cast").write_text("")
    text = await _refusal(client, "export_cast", path=str(tmp_path / "x.cast"))
    assert "Next: use another path, or overwrite=true." in text


async def test_a_project_without_a_capture_says_so(client):
    assert "holds no capture yet" in await _refusal(client, "list_cards")


async def test_the_status_of_an_empty_project_points_at_capture(client):
    answer = await client.call_tool("get_status", {})
    assert answer.structured_content["status"] == "ok"
    assert answer.structured_content["next"] == ['capture_model(model="FILE.py")']
