"""What the dispatch of a cast costs the host, side by side in one process, as JSON lines.

For each operator: microseconds per call by eager, on a hit and on a miss of the shim with 1 and
with 200 variants, by the shim in Python that serves where there is no compiler, and by what else
could be written in Python. Eager and each way take turns; ratios and differences are medians over
the rounds. Then whole models in which every operator that computes has variants and every call
misses, against the same models without. On a machine with a GPU the same on its tensors, where a
hit launches one kernel.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from dispatching.in_python import custom_operator, dispatch_mode, library_override, monkeypatch
from dispatching.models import models, seen
from dispatching.plans import Plans
from torch.nn import functional as F  # noqa: N812  the name torch code uses

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch import shim
from kernelforge_engine.dispatch.guard import describe

ROUNDS, VARIANTS = 9, 200
BATCHES, CALLS = 10, 200  # a batch is so small that a GPU's queue never fills up
MODEL_ROUNDS, MODEL_RUNS, MODEL_VARIANTS = 40, 10, 20
CACHE = Path.home() / ".cache" / "kernelforge"
MISS_US = {"cpu": 0.2, "cuda": 0.5}
A = torch.ops.aten

Work = Callable[[], object]
Way = tuple[Callable[[], AbstractContextManager[None]], Work]


@dataclass(frozen=True)
class Case:
    """An operator, the function by which models call it, and arguments for a number of rows."""

    op: Any
    function: Callable[..., torch.Tensor]
    arguments: Callable[[int], tuple[Any, ...]]

    def call(self, rows: int) -> Call:
        """The record of a call."""
        arguments = self.arguments(rows)
        return describe(self.op, arguments, {}, self.op(*arguments))


def cases(device: str) -> dict[str, Case]:
    """The operators, on tensors so small that the host is what one waits for."""
    rand = partial(torch.randn, device=device)
    w, b, g = rand(64, 64), rand(64), rand(64)
    return {
        "relu": Case(A.relu.default, torch.relu, lambda n: (rand(n, 64),)),
        "add": Case(A.add.Tensor, torch.add, lambda n: (rand(n, 64), rand(n, 64))),
        "softmax": Case(A.softmax.int, torch.softmax, lambda n: (rand(n, 64), -1)),
        "linear": Case(A.linear.default, F.linear, lambda n: (rand(n, 64), w, b)),
        "group_norm": Case(
            A.group_norm.default, torch.group_norm, lambda n: (rand(n, 64, 2), 4, g, b)
        ),
    }


def ways(case: Case, plans: Plans, slow: Plans, device: str) -> dict[str, Way]:
    """Each way to call an operator: what has to be entered, and the call."""
    x, other = case.arguments(4), case.arguments(5)
    hit, miss = partial(case.function, *x), partial(case.function, *other)
    call, output = case.call(4), hit()
    many = [call, *(case.call(1000 + n) for n in range(VARIANTS - 1))]
    mode = partial(dispatch_mode, case.op, x, output)
    override = partial(library_override, case.op, x, output, device)
    patched = monkeypatch(case.function, x)
    in_python = partial(slow.added, [call])
    return {
        "hit_of_1": (partial(plans.added, [call]), hit),
        "miss_of_1": (partial(plans.added, [call]), miss),
        f"hit_of_{VARIANTS}": (partial(plans.added, many), hit),
        f"miss_of_{VARIANTS}": (partial(plans.added, many), miss),
        "without_compiler_hit": (in_python, hit),
        "without_compiler_miss": (in_python, miss),
        "dispatch_mode_hit": (mode, hit),
        "dispatch_mode_miss": (mode, miss),
        "library_hit": (override, hit),
        "library_miss": (override, miss),
        "monkeypatch_hit": (nullcontext, partial(patched, *x)),
        "monkeypatch_miss": (nullcontext, partial(patched, *other)),
        "custom_op": (nullcontext, partial(custom_operator(case.op), *x)),
    }


def host_us(call: Work) -> float:
    """Microseconds of the host per call; a GPU catches up between batches, outside of the clock."""
    taken = []
    for _ in range(BATCHES):
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        taken.append(time.perf_counter_ns() - start)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return median(taken) / 1000 / CALLS


def operator_lines(plans: Plans, slow: Plans, device: str) -> Iterator[dict[str, object]]:
    for name, case in cases(device).items():
        eager = partial(case.function, *case.arguments(5))
        pairs: dict[str, list[tuple[float, float]]] = {}
        known = ways(case, plans, slow, device)
        for _ in range(ROUNDS):
            for way, (entered, call) in known.items():
                with entered():
                    here = host_us(call)
                pairs.setdefault(way, []).append((here, host_us(eager)))
        alone = median(there for each in pairs.values() for _, there in each)
        yield {
            "benchmark": "dispatch_overhead",
            "device": device,
            "operator": name,
            "us": {"eager": round(alone, 3), **_each(pairs, lambda here, _: here)},
            "over_eager": _each(pairs, lambda here, there: here / there),
            "extra_us": _each(pairs, lambda here, there: here - there),
            "aims": {"hit over_eager": 1.0, "miss extra_us": MISS_US[device]},
        }


def _each(
    pairs: dict[str, list[tuple[float, float]]], figure: Callable[[float, float], float]
) -> dict[str, float]:
    return {way: round(median(figure(*pair) for pair in each), 3) for way, each in pairs.items()}


def model_lines(plans: Plans, device: str) -> Iterator[dict[str, object]]:
    for name, (model, inputs) in models().items():
        run = partial(model.eval().to(device), inputs(2).to(device))
        never = [c for n in range(MODEL_VARIANTS) for c in seen(model, inputs(3 + n).to(device))]
        pairs = []
        for _ in range(MODEL_ROUNDS):
            with plans.added(never):
                hooked = model_us(run)
            pairs.append((hooked, model_us(run)))
        yield {
            "benchmark": "dispatch_overhead",
            "device": device,
            "model": name,
            "hooked_operators": len({call.name for call in never}),
            "variants": len(never),
            "us": {
                "eager": round(median(plain for _, plain in pairs), 1),
                "all_miss": round(median(hooked for hooked, _ in pairs), 1),
            },
            "all_miss_over_eager": round(median(a / b for a, b in pairs), 4),
            "aims": {"all_miss_over_eager": 1.02},
        }


def model_us(run: Work) -> float:
    """Microseconds per run, the best of some; the work of a GPU is waited for."""
    best = float("inf")
    for _ in range(MODEL_RUNS):
        start = time.perf_counter_ns()
        run()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        best = min(best, (time.perf_counter_ns() - start) / 1000)
    return best


def main() -> None:
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.no_grad():
        plans, slow = Plans(shim.load(CACHE)), Plans(shim.interpreted())
        for lines in (operator_lines(plans, slow, device), model_lines(plans, device)):
            for line in lines:
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
