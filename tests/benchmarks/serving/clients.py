"""Clients of a server, in a process of their own: a plan on standard input, times on its output.

    python -m serving.clients < plan.json

Every client calls the same tools in turn, each with the next of its arguments. With `pause_s` it
waits so long between two calls; with none it calls again as soon as it is answered. Before that it
makes each call once, and waits until all of its process have.
"""

import json
import random
import sys
import time
from typing import Any

import anyio
from mcp.client import Client


async def main() -> None:
    plan = json.loads(sys.stdin.read())
    times: dict[str, list[float]] = {name: [] for name in plan["calls"]}
    ready = anyio.Event()
    opened: list[int] = []

    async def one(number: int) -> None:
        async with Client(plan["url"]) as client:
            for call in plan["calls"].values():
                await client.call_tool(call["tool"], call["arguments"][0])
            opened.append(number)
            if len(opened) == plan["clients"]:
                ready.set()
            await ready.wait()
            await _work(client, plan, times, random.Random(number))

    async with anyio.create_task_group() as group:
        for number in range(plan["clients"]):
            group.start_soon(one, plan["first"] + number)
    sys.stdout.write(json.dumps(times))


async def _work(
    client: Client, plan: dict[str, Any], times: dict[str, list[float]], chance: random.Random
) -> None:
    end = time.monotonic() + plan["seconds"]
    await anyio.sleep(chance.random() * plan["pause_s"])
    while time.monotonic() < end:
        for name, call in plan["calls"].items():
            arguments = chance.choice(call["arguments"])
            start = time.perf_counter()
            answer = await client.call_tool(call["tool"], arguments)
            times[name].append(time.perf_counter() - start)
            if answer.is_error:
                raise RuntimeError(answer.content[0].text)
            if plan["pause_s"]:
                await anyio.sleep(plan["pause_s"] * (0.5 + chance.random()))


if __name__ == "__main__":
    anyio.run(main)
