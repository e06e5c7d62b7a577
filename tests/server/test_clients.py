"""Clients of every era, over both transports, that lose patience, their connection or a race."""

from itertools import pairwise, product

import anyio
import pytest
from mcp import MCPError
from mcp.types import REQUEST_TIMEOUT

from kernelforge_tools.registry import tools

MODES = ["auto", "legacy", "2026-07-28"]
RELU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
"""


class Heard:
    """The progress of one call."""

    def __init__(self, then=lambda: None):
        self.seconds, self.words, self._then = [], [], then

    async def __call__(self, done, _total, message):
        self.seconds.append(done)
        self.words.append(message)
        self._then()


async def capture(client, gated, heard=None, **more):
    asked = {"model": str(gated.file), "wait_s": more.pop("wait_s", 120)}
    return await client.call_tool("capture_model", asked, progress_callback=heard, **more)


async def cancelled(client, gated):
    with anyio.CancelScope() as patience:
        await capture(client, gated, Heard(patience.cancel))
    assert patience.cancelled_caught


async def timed_out(client, gated):
    with pytest.raises(MCPError) as raised:
        await capture(client, gated, read_timeout_seconds=0.5)
    assert raised.value.error.code == REQUEST_TIMEOUT


async def cut_off(client, gated, relay):
    heard = Heard(relay.cut)
    with pytest.raises(MCPError):
        await capture(client, gated, heard)
    # The second where the job's process was up within the first second.
    assert heard.words in (["j1: capture_model"], ["j1: loading the model (0/6)"])


async def ended(client, job):
    """Wait until a job has ended, without asking for its answer."""
    with anyio.fail_after(120):
        while True:
            (log,) = (await client.read_resource(f"kernelforge://jobs/{job}/log")).contents
            if "running" not in log.text:
                return log.text.splitlines()[0]
            await anyio.sleep(0.1)


@pytest.mark.parametrize(("transport", "mode"), list(product(["stdio", "http"], MODES)))
async def test_a_client_that_gives_up_in_any_way_finds_its_job_by_the_same_call(
    reaching, agent_of, gated, transport, mode
):
    reach = reaching(transport, mode)
    async with reach.server() as server, reach.relayed(server) as (client, relay):
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == [tool.name for tool in tools()]
        agent = agent_of(client)
        assert "holds no capture yet" in await agent.refused("list_cards")
        await cancelled(client, gated)
        await timed_out(client, gated)
        if relay:
            await cut_off(client, gated, relay)
        heard = Heard(gated.open)
        found = (await capture(client, gated, heard)).structured_content
        assert found["data"]["capture_id"] == "c1"
        assert {words.split(":")[0] for words in heard.words} == {"j1"}
        assert heard.seconds == sorted(set(heard.seconds))
        assert await agent.variant_of("aten::relu") == "v1"
        again = (await capture(client, gated, wait_s=0)).structured_content
        assert (again["status"], again["job_id"]) == ("running", "j2")
        assert (await agent.call("cancel_job", job_id="j2"))["status"] == "cancelled"
        once_more = (await capture(client, gated, wait_s=0)).structured_content
        assert once_more["job_id"] == "j3"


async def test_progress_comes_at_most_once_a_second_and_within_ten(reaching, gated):
    reach = reaching("stdio", "auto")

    def patience():
        if heard.words.count(heard.words[-1]) > 2:  # said again, for it had nothing new to say
            gated.open()

    heard = Heard(patience)
    async with reach.server() as server, reach.client(server) as client:
        assert not (await capture(client, gated, heard)).is_error
    gaps = [later - sooner for sooner, later in pairwise([0.0, *heard.seconds])]
    assert len(gaps) >= 3
    assert min(gaps) >= 0.9  # they are rounded
    assert max(gaps) <= 10


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_answer_that_a_cut_connection_lost_is_given_to_the_same_call(
    reaching, gated, mode
):
    reach = reaching("http", mode)
    async with (
        reach.server() as server,
        reach.client(server) as watching,
        reach.relayed(server) as (client, relay),
    ):
        await cut_off(client, gated, relay)
        gated.open()
        assert await ended(watching, "j1") == "j1 capture_model: done"
        found = (await capture(client, gated)).structured_content
        assert found["data"]["capture_id"] == "c1"
        again = (await capture(client, gated, wait_s=0)).structured_content
        assert again["job_id"] == "j2"


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_two_agents_on_one_variant_see_each_other_and_lose_nothing(
    reaching, agent_of, gated, transport
):
    gated.open()
    reach = reaching(transport, "auto")
    async with (
        reach.server() as server,
        reach.client(server, "one") as one,
        reach.client(server, "two", mode="legacy") as two,
    ):
        agents = {"one": agent_of(one), "two": agent_of(two)}
        captured = await both(agents, lambda _, a: a.call("capture_model", model=str(gated.file)))
        assert {found["data"]["capture_id"] for found in captured.values()} == {"c1"}
        variant = await agents["one"].variant_of("aten::relu")
        leased = await both(agents, lambda _, a: a.call("mcts_select", variant_id=variant))
        leases = {name: found["data"]["lease_id"] for name, found in leased.items()}
        assert len(set(leases.values())) == 2
        rivals = {name: found["data"].get("rivals") for name, found in leased.items()}
        first, second = sorted(agents, key=lambda name: leases[name])
        assert rivals == {first: None, second: [f"{leases[first]}: {first}"]}
        assert "another agent would not" in leased[second]["summary"]
        await submitted(agents, variant, leases)


async def both(agents, call):
    """What both agents are answered when they call at one moment."""
    found = {}

    async def one(name, agent):
        found[name] = await call(name, agent)

    async with anyio.create_task_group() as group:
        for name, agent in agents.items():
            group.start_soon(one, name, agent)
    return found


async def submitted(agents, variant, leases):
    def submit(name, agent, source=None):
        return agent.call(
            "compile_and_validate",
            variant_id=variant,
            lease_id=leases[name],
            source=source or f"{RELU}// {name}\n",
        )

    valid = await both(agents, submit)
    nodes = {name: found["data"]["node_id"] for name, found in valid.items()}
    assert len(set(nodes.values())) == 2
    for name, node in nodes.items():
        shown = (await agents["one"].call("get_node", node_id=node))["data"]["node"]
        assert (shown["author"], shown["parent_id"]) == (name, "n1")
    # Whoever lost the answer asks again; whoever has another idea needs another lease.
    again = await submit("one", agents["one"])
    assert again["data"]["node_id"] == nodes["one"]
    assert again["next"][0] == f'benchmark(node_id="{nodes["one"]}")'
    under = {"variant_id": variant, "lease_id": leases["two"]}
    text = await agents["two"].refused("compile_and_validate", source=RELU, **under)
    assert "has been used. Next: call mcts_select" in text
