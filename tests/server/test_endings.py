"""Servers that end while a job runs, asked to or not, and what the next one makes of it."""

import signal
from contextlib import suppress

import anyio
import pytest
from mcp.client.subscriptions import SubscriptionLost

WAYS = {
    "asked to, with a client of today": ("auto", signal.SIGTERM, 0),
    "by Ctrl-C, with a client of 2025": ("legacy", signal.SIGINT, 130),
}


async def listening(client):
    """Listen for changes, as clients of today do, until the server ends."""
    with suppress(SubscriptionLost):
        async with client.listen(tools_list_changed=True) as events:
            async for event in events:
                pytest.fail(f"nothing changes, and yet: {event}")


@pytest.mark.parametrize("way", WAYS)
async def test_a_server_that_ends_says_so_to_who_waits_and_the_next_goes_on(
    reaching, agent_of, gated, processes, serve, way
):
    mode, number, code = WAYS[way]
    reach, served = reaching("http", mode), serve()
    told = []

    async def wait(client):
        told.append(await agent_of(client).refused("wait_job", job_id="j1", wait_s=120))

    async with reach.client(served.url) as client, anyio.create_task_group() as group:
        await agent_of(client).call("capture_model", model=str(gated.file), wait_s=0)
        child = await processes.appears("worker.capture", parent=served.pid)
        if mode == "auto":
            group.start_soon(listening, client)
        group.start_soon(wait, client)
        await anyio.sleep(0.5)
        ended, said = await anyio.to_thread.run_sync(served.end, number)
    assert (ended, "ERROR" in said, "Traceback" in said) == (code, False, False)
    assert told == [
        "Job j1 ended with the server that ran it. "
        'Next: wait_job(job_id="j1") takes it up again, as the same call would.'
    ]
    await processes.gone([child])
    await taken_up(reach, agent_of, gated)


async def taken_up(reach, agent_of, gated):
    """The next server has the job on record, and does its work when it is waited for."""
    gated.open()
    async with reach.server() as server, reach.client(server) as client:
        found = await agent_of(client).call("wait_job", job_id="j1", wait_s=120)
        assert found["data"]["capture_id"] == "c1"


async def test_a_client_that_goes_away_ends_its_server_over_stdio_and_the_next_one_goes_on(
    reaching, agent_of, gated, processes, tmp_path
):
    reach = reaching("stdio", "auto")
    async with reach.server() as server:
        async with reach.client(server) as client:
            await agent_of(client).call("capture_model", model=str(gated.file), wait_s=0)
            ours = [await processes.appears(f"--project {tmp_path}")]
            ours += [await processes.appears("worker.capture", parent=ours[0])]
        await processes.gone(ours)
    await taken_up(reach, agent_of, gated)
