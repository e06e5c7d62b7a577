"""An agent's whole loop, through the official client and a real server process."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client import Client

from kernelforge_engine.cast import manifest

pytestmark = pytest.mark.calm

RELU = """\
/* kernelforge
[[launch]]
kernel = "rectify"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void rectify(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
"""
WRONG = RELU.replace("0.0f : x[i]", "0.0f : 1.01f * x[i]")
BROKEN = RELU.replace("long long n", "long long n, int surplus")


@pytest.fixture
def server(tmp_path, python_command) -> StdioServerParameters:
    return StdioServerParameters(
        command=python_command[0],
        args=[*python_command[1:], "mcp", "--project", str(tmp_path / "project")],
        cwd=str(tmp_path),
    )


class Agent:
    """Calls tools and insists on what every answer must be."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.progress: list[str] = []

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        answer = await self.client.call_tool(tool, arguments, progress_callback=self._progress)
        text = answer.content[0].text
        assert not answer.is_error, text
        assert json.loads(text) == answer.structured_content
        assert len(text) < 6_000
        found: dict[str, Any] = answer.structured_content
        while found["status"] == "running":
            found = await self.call("wait_job", job_id=found["job_id"], wait_s=60)
        return found

    async def _progress(self, _done: float, _total: float | None, message: str | None) -> None:
        self.progress.append(message or "")


async def _captured_relu(agent: Agent, entry: str) -> str:
    captured = await agent.call("capture_model", model=entry, wait_s=0)
    assert captured["status"] == "ok"
    assert all(message.startswith("j1: ") for message in agent.progress)
    cards = (await agent.call("list_cards"))["data"]["cards"]
    relu = next(card for card in cards if card["operator"] == "aten::relu")
    shown = (await agent.call("get_card", card_id=relu["id"], sections=["format"]))["data"]
    assert list(shown["header"]["buffers"]) == ["in0", "out0"]
    assert shown["header"]["buffers"]["in0"].startswith("f32[16, 256] ")
    assert "## Candidate format" in shown["format"]
    return shown["header"]["variant_id"]


async def _valid_node(agent: Agent, variant: str) -> str:
    lease = (await agent.call("mcts_select", variant_id=variant))["data"]["lease_id"]
    under = {"variant_id": variant, "lease_id": lease}
    refused = await agent.call("compile_and_validate", source=BROKEN, **under)
    assert refused["status"] == "compile_failed"
    assert "args" in refused["data"]["log"]
    wrong = await agent.call("compile_and_validate", source=WRONG, **under)
    assert wrong["status"] == "wrong_values"
    assert set(wrong["data"]["meaning"]) == {wrong["data"]["evidence"]["rule"]}
    await _failures_are_kept(agent, variant, refused["data"], wrong["data"])
    valid = await agent.call("compile_and_validate", source=RELU, note="one loop", **under)
    assert valid["status"] == "valid"
    again = await agent.call("compile_and_validate", variant_id=variant, source=RELU)
    assert f"is node {valid['data']['node_id']} already" in again["summary"]
    return valid["data"]["node_id"]


async def _failures_are_kept(
    agent: Agent, variant: str, refused: dict[str, Any], wrong: dict[str, Any]
) -> None:
    shown = (await agent.call("get_node", node_id=refused["attempt_id"]))["data"]
    assert shown["source"] == BROKEN
    assert "args" in shown["verdict"]["log"]
    failed = (await agent.call("mcts_select", variant_id=variant))["data"]["failed"]
    assert [row["id"] for row in failed] == [wrong["attempt_id"], refused["attempt_id"]]
    assert "args" in failed[1]["error"]


async def _found_faster(agent: Agent, node: str) -> None:
    for _ in range(6):  # on a busy machine a timing may be inconclusive
        timed = await agent.call("benchmark", node_id=node)
        assert timed["data"]["node_id"] == node
        if timed["status"] == "faster":
            return
    pytest.fail(timed["summary"])


async def test_an_agent_gets_from_a_model_to_a_cast(server, user_projects, tmp_path):
    async with Client(server) as client:
        agent = Agent(client)
        variant = await _captured_relu(agent, str(user_projects / "small_mlp" / "model.py"))
        node = await _valid_node(agent, variant)
        await _found_faster(agent, node)
        detail = await agent.call("get_node", node_id=node, sections=["source", "lineage"])
        assert detail["data"]["source"] == RELU
        assert len(detail["data"]["lineage"]) == 2
        again = await agent.call("mcts_select", variant_id=variant)
        assert {n["id"] for n in again["data"]["tried"]} <= {node}

        await _tree_is_shown(agent, variant, node)
        path = tmp_path / "model.cast"
        await _exported_and_measured(agent, path, node)
        status = (await agent.call("get_status"))["data"]
        (row,) = status["newest_captures"]
        assert (row["id"], row["device"], row["calls"] > 0) == ("c1", "cpu", True)
        assert (status["captures"], status["nodes"], status["running_jobs"]) == (1, 1, 0)


async def _tree_is_shown(agent: Agent, variant: str, node: str) -> None:
    tree = (await agent.call("get_tree", variant_id=variant))["data"]
    root, child = tree["nodes"]
    assert (root["depth"], child["id"], child["depth"]) == (0, node, 1)
    assert child["parent_id"] == root["id"]
    assert (child["outcome"], child["note"], tree["best_node_id"]) == ("faster", "one loop", node)
    assert tree["failed"] == {"compile_failed": 1, "wrong_values": 1}
    assert [row["status"] for row in tree["failures"]] == ["wrong_values", "compile_failed"]
    short = await agent.call("get_tree", variant_id=variant, limit=1)
    assert [row["id"] for row in short["data"]["nodes"]] == [root["id"]]
    assert any(call.startswith("get_tree(") and "offset=1" in call for call in short["next"])


async def _exported_and_measured(agent: Agent, path: Path, node: str) -> None:
    # Whether so small a kernel helps the whole model is not what this is about.
    answer = await agent.call("export_cast", path=str(path), keep_all=True)
    exported = answer["data"]
    assert path.stat().st_size == exported["bytes"]  # noqa: ASYNC240  a file of the test
    assert [e["node_id"] for e in exported["entries"]] == [node]
    assert exported["whole_model"]["original_us"] > 0
    assert "The model with it: " in answer["summary"]
    looked = await agent.call("inspect_cast", path=str(path))
    assert looked["data"]["entries"] == exported["entries"]
    bare = path.with_name("bare.cast")
    await agent.call("export_cast", path=str(bare), measure=False, samples=False)
    held = [len(manifest.read(p).entries[0].origin.samples) for p in (path, bare)]
    assert held == [1, 0]
    measured = await agent.call(
        "measure_model", path=str(path), modes=["cuda_graph", "eager"], attribution=True
    )
    assert measured["status"] in {"faster", "slower", "no clear difference"}
    (row,) = measured["data"]["rows"]
    assert (row["mode"], row["run_hits"], row["max_abs"]) == ("eager", 2, 0)
    assert row["saving"]["predicted_us"] > 0
    assert set(measured["data"]["failed"]) == {"cuda_graph"}
    assert [kernel["node_id"] for kernel in measured["data"]["kernels"]] == [node]


async def test_a_job_is_cancelled_with_what_works_on_it(server, tmp_path, processes):
    model = tmp_path / "slow.py"
    model.write_text("import time\n\n\ndef make_model():\n    time.sleep(600)\n")
    async with Client(server) as client:
        asked = {"model": str(model), "wait_s": 0}
        found = await client.call_tool("capture_model", asked)
        job = found.structured_content["job_id"]
        child = await processes.appears("worker.capture")
        agent = Agent(client)
        assert (await agent.call("cancel_job", job_id=job))["status"] == "cancelled"
        await processes.gone([child])
        again = await client.call_tool("capture_model", asked)
        assert again.structured_content["job_id"] != job
        await agent.call("cancel_job", job_id=again.structured_content["job_id"])
        gone = await client.call_tool("wait_job", {"job_id": job})
        assert gone.is_error
        text = gone.content[0].text
        assert f"Job {job} was cancelled. Next: call capture_model again." in text
        assert (await agent.call("get_status"))["data"]["running_jobs"] == 0
