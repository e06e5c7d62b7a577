"""An engine under steady work of which a tenth crashes, as JSON: memory, files, and what is kept.

    python tests/benchmarks/soak.py [MINUTES]

Three agents submit new candidates for one variant; one in ten ends its process, in turns by a wrong
address, a trap, an endless recursion and a write far away. Memory and open files of the engine and
of its Judge are read along the way: `grown` is the median of the last fifth over that of the second
fifth, since the first one warms up. At the end every node that was reported is looked up again.
"""

import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

import anyio

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_server.settings import resolve

MINUTES = 1.0
AGENTS = 3
CRASHING = 10  # every such candidate
PARTS = 5
EVERY_S = 2.0
MODEL = """import torch


def make_model():
    return torch.nn.ReLU()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(64, 256)
"""
CANDIDATE = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
static int deep(volatile int n) { return n == 7 ? 0 : deep(n + 1) + 1; }
extern "C" void k(const float* x, float* y, long n) {
  CRASH
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
}
// NUMBER
"""
CRASHES = ("*(volatile int*)8 = 1;", "__builtin_trap();", "y[0] = deep(8);", "y[-99999999] = 1;")


class Agents:
    """What the agents were told."""

    def __init__(self, engine: Engine, variant_id: str, end: float) -> None:
        self._engine, self._variant_id, self._end = engine, variant_id, end
        self._number = 0
        self.nodes: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def work(self) -> None:
        """Submit until the time is over."""
        while time.monotonic() < self._end:
            self._number += 1
            number = self._number
            crashes = number % CRASHING == 0
            crash = CRASHES[number // CRASHING % len(CRASHES)] if crashes else ""
            text = CANDIDATE.replace("CRASH", crash).replace("NUMBER", str(number))
            proposal = Proposal(text=text, variant_id=self._variant_id)
            found = await self._engine.submit(proposal, lambda _progress: None)
            self.outcomes[str(found.verdict.status)] += 1
            if found.node is not None:
                self.nodes.append(found.node.id)
            if (found.node is None) != crashes:
                self.wrong.append(f"{number}: {found.verdict.status}, {found.verdict.reason}")


def below(pid: int) -> list[int]:
    """The children of a process."""
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def judge() -> int | None:
    """The Judge among this process's children."""
    for child in below(os.getpid()):
        if b"worker.judge" in Path(f"/proc/{child}/cmdline").read_bytes():
            return child
    return None


def memory_mb(pid: int) -> float:
    """Resident megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def files(pid: int) -> int:
    """Open files."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


async def watch(end: float, seen: dict[str, list[float]]) -> None:
    """Read memory and files until the time is over."""
    while time.monotonic() < end:
        for name, pid in (("engine", os.getpid()), ("judge", judge())):
            if pid is not None:
                seen.setdefault(f"{name}_mb", []).append(memory_mb(pid))
                seen.setdefault(f"{name}_files", []).append(files(pid))
        await anyio.sleep(EVERY_S)


def grown(values: list[float]) -> dict[str, float]:
    """Medians of the second and of the last part, and their ratio."""
    size = max(1, len(values) // PARTS)
    early, late = median(values[size : 2 * size] or values), median(values[-size:])
    return {"early": round(early, 1), "late": round(late, 1), "grown": round(late / early, 3)}


async def main(minutes: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.py"
        file.write_text(MODEL)
        async with Engine.open(resolve(Path(folder) / "project")) as engine:
            await engine.capture(CaptureRequest(model=f"{file}:make_model"), lambda _progress: None)
            (card,) = [c for c in await engine.cards() if c.operator == "aten::relu"]
            (variant,) = card.variants
            end = time.monotonic() + 60 * minutes
            agents, seen = Agents(engine, variant.id, end), dict[str, list[float]]()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch, end, seen)
                for _ in range(AGENTS):
                    tasks.start_soon(agents.work)
            kept = {node.id for node in await engine.tree(variant.id)}
        report = {
            "benchmark": "soak",
            "minutes": minutes,
            "outcomes": dict(agents.outcomes),
            **{name: grown(values) for name, values in seen.items()},
            "lost_nodes": len(set(agents.nodes) - kept),
            "wrong": agents.wrong[:5],
            "left_processes": len(below(os.getpid())),
        }
        print(json.dumps(report))
        raise SystemExit(bool(agents.wrong or set(agents.nodes) - kept))


if __name__ == "__main__":
    anyio.run(main, float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES)
