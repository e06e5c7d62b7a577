"""A server that is killed with everything under way, and the one that is started after it."""

import anyio
import pytest

# So slow that a benchmark needs one glance.
RELU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) {
    volatile float v = x[i];
    for (int j = 0; j < 20000; ++j) v = x[i];
    y[i] = v < 0.f ? 0.f : v;
  }
}
"""


async def reported(agent, gated):
    """What a first server says it has: a variant, a timed node, and an open lease."""
    await agent.call("capture_model", model=str(gated.file))
    variant = await agent.variant_of("aten::relu")
    lease = (await agent.call("mcts_select", variant_id=variant))["data"]["lease_id"]
    valid = await agent.call(
        "compile_and_validate", source=RELU, variant_id=variant, lease_id=lease
    )
    node = valid["data"]["node_id"]
    timing = (await agent.call("benchmark", node_id=node))["data"]["timing"]
    open_lease = (await agent.call("mcts_select", variant_id=variant))["data"]["lease_id"]
    return variant, node, timing, lease, open_lease


async def killed(agent, node, gated, processes, folder):
    """Kill the server while it times a node and captures a model; the jobs it leaves."""
    gated.close()
    capture = await agent.call("capture_model", model=str(gated.file), wait_s=0)
    timing = await agent.call("benchmark", node_id=node, wait_s=0)
    server = await processes.appears(f"--project {folder}")
    for words in ("worker.capture", "kernelforge_engine.runner"):
        await processes.appears(words, parent=server)
    below = processes.below(server)
    await processes.kill(server)
    await processes.gone(below)
    assert len(below) >= 3
    return timing["job_id"], capture["job_id"]


@pytest.mark.parametrize(("transport", "mode"), [("stdio", "auto"), ("http", "legacy")])
async def test_a_killed_server_loses_nothing_and_the_next_one_goes_on(
    reaching, agent_of, gated, processes, tmp_path, transport, mode
):
    gated.open()
    reach = reaching(transport, mode)
    with anyio.fail_after(280):
        async with reach.server() as server, reach.client(server) as client:
            agent = agent_of(client)
            variant, node, timing, used, lease = await reported(agent, gated)
            timed, captured = await killed(agent, node, gated, processes, tmp_path)
        async with reach.server() as server, reach.client(server) as client:
            agent = agent_of(client)
            await same(agent, node, timing)
            await goes_on(agent, variant, node, used, lease)
            gated.open()
            # Whichever server began a job, who waits for it is answered.
            again = await agent.call("wait_job", job_id=timed)
            assert again["data"]["node_id"] == node
            found = await agent.call("wait_job", job_id=captured)
            assert found["data"]["capture_id"] == "c2"


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
    assert (await agent.call("mcts_select", variant_id=variant))["data"]["lease_id"]


async def test_a_call_that_waits_for_another_servers_job_goes_on_with_it_when_that_server_dies(
    reaching, agent_of, gated, processes
):
    reach = reaching("stdio", "auto")
    asked = {"model": str(gated.file), "wait_s": 240}
    with anyio.fail_after(200):
        async with reach.client(reach.parameters) as one, reach.client(reach.parameters) as two:
            job = await agent_of(one).call("capture_model", model=str(gated.file), wait_s=0)
            worker = (await processes.appears("worker.capture"),)
            watching, found = anyio.Event(), []

            async def told(*_):
                watching.set()

            async def wait():
                call = two.call_tool("capture_model", asked, progress_callback=told)
                found.append((await call).structured_content)

            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await watching.wait()
                await processes.kill(processes.parent(worker[0]))
                await processes.appears("worker.capture", but=worker[0])
                gated.open()
    assert found[0]["data"]["capture_id"] == "c1"
    assert job["job_id"] == "j1"
