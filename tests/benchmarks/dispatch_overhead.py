"""What the shim costs: a hit and a miss against eager, side by side in one process, as JSON.

Ratios of microseconds per call from Python; below 1 the shim is cheaper than eager itself.
"""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import torch

from kernelforge_engine.dispatch import shim
from kernelforge_engine.dispatch.guard import describe
from kernelforge_engine.launch.resolve import buffer_sizes
from kernelforge_engine.plans import ResolvedPlan

CALLS, ROUNDS = 5000, 15
CACHE = Path.home() / ".cache" / "kernelforge"
A = torch.ops.aten


def call_us(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - start) / 1000 / CALLS


def main() -> None:
    torch.set_num_threads(1)
    x, w = torch.randn(4, 64), torch.randn(64, 64)
    other = torch.randn(5, 64)
    cases = {
        "relu": (A.relu.default, lambda t: (t,)),
        "softmax": (A.softmax.int, lambda t: (t, -1)),
        "linear": (A.linear.default, lambda t: (t, w)),
    }
    loaded = shim.load(CACHE)
    for name, (op, arguments) in cases.items():
        on_hit, on_miss = (partial(op, *arguments(t)) for t in (x, other))
        with torch.no_grad():
            call = describe(op, arguments(x), {}, on_hit())
            empty = ResolvedPlan(buffers=tuple(buffer_sizes(call)), launches=())
            times: dict[str, list[float]] = {"eager": [], "hit": [], "miss": []}
            for _ in range(ROUNDS):
                times["eager"].append(call_us(on_hit))
                handle = loaded.add(call, empty)
                times["hit"].append(call_us(on_hit))
                times["miss"].append(call_us(on_miss))
                loaded.remove(handle)
        us = {key: round(median(values), 3) for key, values in times.items()}
        ratios = {f"{key}_over_eager": round(us[key] / us["eager"], 3) for key in ("hit", "miss")}
        print(json.dumps({"benchmark": "dispatch_overhead", "operator": name, "us": us, **ratios}))


if __name__ == "__main__":
    main()
