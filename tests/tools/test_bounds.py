"""How much the tools take, and how much they answer when a project holds as much as it may."""

import json
from contextlib import nullcontext

import anyio
import pytest
from mcp.client import Client

from kernelforge_engine.calls import Argument, Call, OutputSpec, TensorSpec
from kernelforge_engine.engine import Engine
from kernelforge_engine.plans import LaunchPlan, Source
from kernelforge_engine.pool.orders import Sighting
from kernelforge_engine.records import Capture, Outcome, Status, Timing, Verdict
from kernelforge_engine.store.captures import Captures
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.trees import Filing, Trees
from kernelforge_server import settings
from kernelforge_server.app import build_server
from kernelforge_tools.bounds import MAX_ANSWER_CHARS
from kernelforge_tools.registry import tools

SHORT, LONG = 2_400, 16_000  # characters of 600 and 4,000 tokens
TEXT = "x" * 5000
SOURCE = "// " + "abcdefghij" * 6000
LOG = "\n".join(f"candidate.cpp:{n}:1: error: {'z' * 150} {n}" for n in range(50))
SPEC = TensorSpec(dtype="float32", shape=(2, 3), stride=(3, 1), device="cpu")
CAPTURE = Capture(
    id="", model="/" + "m" * 300 + ".py:make_model", inputs=("make_inputs",), device="cpu",
    device_name="a processor", torch_version="2.13.0", wall_us=100.0, busy_us=80.0, calls=3,
    output_drift=0.0, created_at=1.0,
)  # fmt: skip


def sighting():
    call = Call(
        operator="aten::relu",
        overload="",
        words=(1,),
        arguments=(Argument(name="self", value={"tensor": 0}),),
        inputs=(SPEC,),
        outputs=(OutputSpec(tensor=SPEC),),
    )
    return Sighting(
        call=call, calls=3, eager_us=10.0, share=0.5, floor_us=1.0, module="m", target=True,
        reason=None, examples=(),
    )  # fmt: skip


def filing(variant, parent, number, status):
    text = f"{SOURCE}{number}"
    return Filing(
        variant_id=variant,
        parent_id=parent,
        lease_id=None,
        source=Source(
            text=text, backend="cpu", plan=LaunchPlan(lets=(), launches=()), digest=str(number)
        ),
        author="a" * 60,
        note="n" * 500,
        verdict=Verdict(status=status, reason="r" * 900, log=LOG, evidence={"rule": "T1"}),
        artifact_digest=None,
        at=float(number),
    )


async def filled(project):
    """A project in which everything is as long as it may be."""
    async with Database.open(project, None) as database:
        for _ in range(12):
            await Captures(database).add(CAPTURE, [sighting()])
        trees = Trees(database)
        parent = (await trees.root("v1", 0.0)).id
        timing = Timing(
            outcome=Outcome.FASTER, speedup=1.23456, low=1.2, high=1.3, eager_us=10.0,
            candidate_us=8.1, scope="O", evidence={"samples": [1.2345] * 4000},
        )  # fmt: skip
        for number in range(60):
            node = await trees.file_node(filing("v1", parent, number, Status.VALID))
            await trees.file_timing(node.id, timing)
            parent = node.id if number % 12 == 0 else parent
            await trees.file_attempt(filing("v1", parent, 100 + number, Status.COMPILE_FAILED))


@pytest.fixture
async def client(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)  # the server replaces it; the test's own comes back
    await filled(tmp_path / "p")
    async with Client(build_server(Engine.open(settings.resolve(tmp_path / "p")))) as opened:
        yield opened


async def _answer(client, tool, most, **arguments):
    answer = await client.call_tool(tool, arguments)
    text = answer.content[0].text
    assert not answer.is_error, text
    assert len(text) <= most, (tool, arguments, len(text))
    assert json.loads(text) == answer.structured_content
    return answer.structured_content


async def test_short_answers_stay_short_in_a_full_project(client):
    for n in range(12):
        told = {"model": f"{n}" * 100, "tokens": {"input": n}, "arm": f"arm {n} " * 20}
        await _answer(client, "record_usage", SHORT, key=str(n), **told)
    await _answer(client, "get_status", SHORT)
    await _answer(client, "list_cards", SHORT)
    await _answer(client, "get_card", SHORT, card_id="k1")
    await _answer(client, "get_tree", SHORT, variant_id="v1")
    await _answer(client, "get_node", SHORT, node_id="n5")


async def test_long_answers_stay_within_what_every_client_shows(client):
    await _answer(client, "mcts_select", LONG, variant_id="v1")
    await _answer(client, "get_card", LONG, card_id="k1", sections=["tree", "usage"])
    await _answer(client, "get_tree", MAX_ANSWER_CHARS, variant_id="v1", limit=100)
    every = ["source", "verdict", "timing", "lineage"]
    await _answer(client, "get_node", MAX_ANSWER_CHARS, node_id="n5", sections=every)
    await _answer(client, "get_node", MAX_ANSWER_CHARS, node_id="a5")
    for section in ("source", "verdict", "lineage"):
        await _answer(client, "get_node", LONG, node_id="n5", sections=[section])


async def test_a_long_source_is_read_in_parts(client):
    text, offset = "", 0
    while True:
        found = await _answer(
            client, "get_node", LONG, node_id="n2", sections=["source"], source_offset=offset
        )
        text += found["data"]["source"]
        if "for the next" not in found["data"]["left_out"]:
            break
        offset = len(text)
    assert text == f"{SOURCE}0"


async def test_the_tree_shows_the_latest_failures(client):
    found = await _answer(client, "get_tree", SHORT, variant_id="v1")
    assert [row["id"] for row in found["data"]["failures"]] == ["a60", "a59"]


async def test_the_whole_note_of_a_node_can_be_read(client):
    found = await _answer(client, "get_node", SHORT, node_id="n5")
    assert found["data"]["note"] == "n" * 500
    assert found["data"]["node"]["note"].endswith("...")


def _arguments(tool):
    """An argument of every kind that a tool takes, far too large."""
    large = {"string": TEXT, "array": ["n1"] * 300, "object": {f"k{n}": 1 for n in range(300)}}
    for name, about in tool.parameters["properties"].items():
        kinds = [about, *about.get("anyOf", ())]
        for kind in {k.get("type") for k in kinds} & set(large):
            yield name, TEXT * 60 if name == "source" else large[kind]
        if {k.get("type") for k in kinds} & {"integer"}:
            yield name, 10**30


CASES = [(tool.name, name, value) for tool in tools() for name, value in _arguments(tool)]


async def test_no_tool_takes_an_argument_beyond_all_use(client):
    assert len(CASES) > 30
    for tool, name, value in CASES:
        answer = await client.call_tool(tool, {name: value})
        text = answer.content[0].text
        assert answer.is_error, (tool, name)
        assert f"`{name}`" in text
        assert "Next:" in text
        assert len(text) <= 2000


async def test_an_error_is_no_longer_than_a_client_shows(client):
    wrong = {f"argument_{n}": 1 for n in range(200)}
    text = (await client.call_tool("get_status", wrong)).content[0].text
    assert len(text) <= 2000
    assert text.endswith("correct this and call get_status again.")


async def test_no_more_than_64_jobs_run_or_wait(tmp_path, monkeypatch):
    async def for_ever(_notice):
        await anyio.sleep_forever()

    monkeypatch.setattr("sys.stdout", None)
    async with Engine.open(settings.resolve(tmp_path / "p")) as engine:
        for number in range(64):
            await engine.jobs.start("benchmark", {"node_id": f"n{number}"}, for_ever)
        async with Client(build_server(nullcontext(engine))) as opened:
            asked = {"model": "model.py", "wait_s": 0}
            refused = await opened.call_tool("capture_model", asked)
            assert refused.is_error
            assert "64 jobs run or wait already" in refused.content[0].text
            assert "Next: call wait_job" in refused.content[0].text
            await opened.call_tool("cancel_job", {"job_id": "j1"})
            taken = await opened.call_tool("capture_model", asked)
            assert taken.structured_content["status"] == "running"
