"""How soon a server answers, as JSON: 16 clients over HTTP on a project of 10,000 nodes, and the
start over standard input and output.

    python tests/benchmarks/server_latency.py [SECONDS [FOLDER]]

Making the project takes most of the time: in a FOLDER that is named it is kept for the next run.
Half of the selections go to one tree of 5,000 nodes, the rest to 50 trees of 100. `paced` clients
wait a quarter of a second between calls; `pressing` ones call again at once, so that their times
are those of a full queue: 16 calls always wait or run. `bare` is a server of the SDK with one tool
that does nothing: what is left when all that is ours is taken away. All of it runs on one machine,
clients included.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import anyio
from mcp import StdioServerParameters
from mcp.client import Client
from serving.project import Made, listed_tokens, make

SECONDS = 5.0
CLIENTS, PROCESSES = 16, 2
PAUSE_S = 0.25
STARTS = 3
HERE = Path(__file__).parent
BARE = """
import anyio, socket, sys, uvicorn
from mcp.server import MCPServer

server = MCPServer("bare")

@server.tool()
async def nothing() -> dict[str, str]:
    return {"status": "ok"}

async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"Serving http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    await uvicorn.Server(config).serve(sockets=[listener])

anyio.run(main, backend_options={"use_uvloop": True})
"""


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    found: dict[str, Any] = {"load_average_before": os.getloadavg()}
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(sys.argv[2] if len(sys.argv) > 2 else scratch) / "project"
        start = time.perf_counter()
        made = anyio.run(make, project)
        found["made_nodes"] = len(made.nodes)
        found["made_s"] = round(time.perf_counter() - start, 1)
        found["start_to_first_answer_s"] = anyio.run(_starts, Path(scratch))
        found["tool_list_tokens"] = round(listed_tokens())
        with _serving([sys.executable, "-c", BARE]) as served:
            calls = {"nothing": {"tool": "nothing", "arguments": [{}]}}
            found["bare"] = _both(served, calls, seconds)
        command = [sys.executable, "-m", "kernelforge_server", "serve", "--port", "0"]
        with _serving([*command, "--project", str(project)]) as served:
            for name, calls in _calls(made).items():
                found[name] = _both(served, {name: calls}, seconds)
    found["load_average_after"] = os.getloadavg()
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


def _calls(made: Made) -> dict[str, dict[str, Any]]:
    choices = [{"variant_id": v} for v in made.small]
    return {
        "list_cards": {"tool": "list_cards", "arguments": [{}]},
        "get_node": {"tool": "get_node", "arguments": [{"node_id": n} for n in made.nodes]},
        "mcts_select": {
            "tool": "mcts_select",
            "arguments": choices + [{"variant_id": made.large}] * len(choices),
        },
    }


def _both(served: "Served", calls: dict[str, Any], seconds: float) -> dict[str, Any]:
    return {
        "paced": _measured(served, calls, seconds, PAUSE_S),
        "pressing": _measured(served, calls, seconds, 0.0),
    }


def _measured(
    served: "Served", calls: dict[str, Any], seconds: float, pause_s: float
) -> dict[str, Any]:
    """The times of all clients together, by call, and what a call took of the server's CPU."""
    each = CLIENTS // PROCESSES
    plan = {
        "url": served.url,
        "clients": each,
        "seconds": seconds,
        "pause_s": pause_s,
        "calls": calls,
    }
    before = served.cpu_s
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "serving.clients"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE,
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip
    for number, process in enumerate(running):
        process.stdin.write(json.dumps({**plan, "first": number * each}))
        process.stdin.close()
    heard = [json.loads(process.stdout.read()) for process in running]
    if any(process.wait() for process in running):
        sys.exit("a client failed")
    used = served.cpu_s - before
    found = {name: _summary([t for h in heard for t in h[name]], seconds) for name in calls}
    count = sum(row["calls"] for row in found.values())
    return {**found, "server_cpu_ms_per_call": round(1000 * used / count, 2)}


def _summary(times: list[float], seconds: float) -> dict[str, float]:
    cuts = quantiles(times, n=100)
    return {
        "calls": len(times),
        "per_s": round(len(times) / seconds, 1),
        "p50_ms": round(cuts[49] * 1000, 2),
        "p99_ms": round(cuts[98] * 1000, 2),
        "max_ms": round(max(times) * 1000, 2),
    }


async def _starts(folder: Path) -> list[float]:
    """Seconds from the start of a server to its answer to a first tool call, one after another."""
    times = []
    for number in range(STARTS):
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "kernelforge_server", "mcp", "--project", str(folder / f"p{number}")],
        )
        start = time.perf_counter()
        async with Client(parameters) as client:
            await client.call_tool("list_cards", {})  # refused: there is no capture yet
            times.append(round(time.perf_counter() - start, 2))
    return times


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    pid: int

    @property
    def cpu_s(self) -> float:
        """What its process has used of processors so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _serving(command: list[str]) -> Iterator[Served]:
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield Served(process.stderr.readline().split()[-1], process.pid)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
