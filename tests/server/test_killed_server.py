"""A server that is killed with everything under way, and the one that is started after it."""

from typing import Any

import anyio
import pytest
from mcp import MCPError, StdioServerParameters
from mcp.client import Client

RELU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
"""


class Agent:
    """A client that waits for jobs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        answer = await self._client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content[0].text
        found: dict[str, Any] = answer.structured_content
        waiting = arguments.get("wait_s") != 0 and found["status"] == "running"
        return await self.call("wait_job", job_id=found["job_id"]) if waiting else found

    async def refused(self, tool: str, **arguments: object) -> str:
        answer = await self._client.call_tool(tool, arguments)
        assert answer.is_error
        return answer.content[0].text


@pytest.fixture
def parameters(tmp_path, python_command):
    return StdioServerParameters(
        command=python_command[0],
        args=[*python_command[1:], "mcp", "--project", str(tmp_path / "project")],
        cwd=str(tmp_path),
    )


@pytest.fixture
def model(user_projects):
    return str(user_projects / "small_mlp" / "model.py")


async def reported(agent, model):
    """What a first server says it has: a variant, a timed node, and an open lease."""
    await agent.call("capture_model", model=model)
    cards = (await agent.call("list_cards"))["data"]["cards"]
    card = next(c["id"] for c in cards if c["operator"] == "aten::relu")
    variant = (await agent.call("get_card", card_id=card))["data"]["header"]["variant_id"]
    lease = (await agent.call("mcts_select", variant_id=variant))["data"]["lease_id"]
    valid = await agent.call(
        "compile_and_validate", source=RELU, variant_id=variant, lease_id=lease
    )
    node = valid["data"]["node_id"]
    timing = (await agent.call("benchmark", node_id=node))["data"]["timing"]
    open_lease = (await agent.call("mcts_select", variant_id=variant))["data"]["lease_id"]
    return variant, node, timing, lease, open_lease


async def killed(client, agent, node, model, processes):
    """Kill the server while it times a node and captures a model; the jobs it leaves."""
    timing = await agent.call("benchmark", node_id=node, wait_s=0)
    capture = await agent.call("capture_model", model=model, wait_s=0)
    server = await processes.appears("kernelforge_server")
    for words in ("kernelforge_engine.runner", "worker.capture"):
        await processes.appears(words, parent=server)
    below = processes.below(server)
    await processes.kill(server)
    await processes.gone(below)
    assert len(below) >= 3
    with pytest.raises(MCPError):
        await client.call_tool("get_status", {})
    return timing["job_id"], capture["job_id"]


async def test_a_killed_server_loses_nothing_and_the_next_one_goes_on(parameters, model, processes):
    with anyio.fail_after(280):
        async with Client(parameters) as client:
            agent = Agent(client)
            variant, node, timing, used, lease = await reported(agent, model)
            jobs = await killed(client, agent, node, model, processes)
        async with Client(parameters) as client:
            agent = Agent(client)
            await same(agent, node, timing)
            for job in jobs:
                text = await agent.refused("wait_job", job_id=job)
                assert f"Job {job} ended with the server that ran it. Next: call" in text
            await goes_on(agent, variant, node, used, lease)


async def same(agent, node, timing):
    found = (await agent.call("get_node", node_id=node, sections=["source"]))["data"]
    assert found["source"] == RELU
    assert found["node"]["timing"] == timing
    status = (await agent.call("get_status"))["data"]
    assert (status["captures"], status["nodes"], status["active_leases"]) == (1, 1, 1)


async def goes_on(agent, variant, node, used, lease):
    under = {"variant_id": variant, "source": RELU + "// better\n"}
    assert "been used" in await agent.refused("compile_and_validate", lease_id=used, **under)
    valid = await agent.call("compile_and_validate", lease_id=lease, **under)
    assert valid["status"] == "valid"
    again = await agent.call("benchmark", node_id=node)
    assert again["data"]["timing"]["speedup"] > 0
    assert (await agent.call("mcts_select", variant_id=variant))["data"]["lease_id"]
