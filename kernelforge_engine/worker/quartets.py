"""Two ways of running one model, timed in turns in one process.

Quartets are ABBA or BAAB by coin; a sample is a run of forward passes long enough to time, after
one that is not timed, since switching a cast registers and removes kernels.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from kernelforge_engine.statistics import paired_interval
from kernelforge_engine.worker.budget import Budget

CONFIDENCE = 0.99
SAMPLE_US = 10_000.0
LONG_US = 5_000_000.0  # beside a run of this length, what switching costs cannot be seen
MOST_CALLS = 200
TRIES = 3  # the first run after a switch is slow, and any may be
SEED = 20_240_229

Run = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two: `enter` puts the process into its state, `run` is one run, and `forwards` the
    forward passes that a replayed one consists of."""

    enter: Callable[[], None]
    run: Run
    forwards: Run

    def settle(self) -> None:
        """Enter, and let instances of regions make their first calls, which run the model's own
        code and are no run of this side."""
        self.enter()
        self.forwards()


@dataclass(frozen=True, kw_only=True)
class Paired:
    """Times of both sides and first over second, with its interval."""

    first_us: float
    second_us: float
    ratio: float
    low: float
    high: float
    quartets: int

    def saved(self, ratio: float) -> float:
        """What the second side saves of the first one's time, at one value of the ratio."""
        return self.first_us * (1 - 1 / ratio)


class Trial:
    """Runs and times two sides; `leave` restores the process after either."""

    def __init__(self, first: Side, second: Side, leave: Callable[[], None]) -> None:
        self._sides, self._leave = (first, second), leave

    def output(self, side: int) -> Any:
        """The output of one run, under the same random state on both sides; its memory is its own,
        since a replayed graph writes into the same tensors again."""
        try:
            self._sides[side].settle()
            with torch.random.fork_rng(range(torch.cuda.device_count())):
                torch.manual_seed(SEED)
                output = pytree.tree_map_only(torch.Tensor, torch.clone, self._sides[side].run())
                synchronize()
        finally:
            self._leave()
        return output

    def paired(self, budget: Budget, rng: np.random.Generator) -> Paired:
        """Time both in as many quartets as there is time for.

        Raises:
            OutOfTime: not even for as many as an interval needs.
        """
        calls, warm, quartet_s = self._calibrated()
        count = budget.quartets(quartet_s)
        pairs = [self._quartet(calls, warm, bool(rng.integers(2))) for _ in range(count)]
        ratios = [math.log(first / second) for first, second in pairs]
        middle, low, high = (math.exp(v) for v in paired_interval(ratios, CONFIDENCE, rng))
        return Paired(
            first_us=median(first for first, _ in pairs),
            second_us=median(second for _, second in pairs),
            ratio=middle,
            low=low,
            high=high,
            quartets=count,
        )

    def _calibrated(self) -> tuple[int, bool, float]:
        """Forward passes that fill a sample, whether one goes before, and a quartet's seconds."""
        start = time.perf_counter()
        self._sides[0].enter()
        switching = time.perf_counter() - start
        run_us = min(self._sample_us(self._sides[0], 1) for _ in range(TRIES))
        calls = max(1, min(MOST_CALLS, math.ceil(SAMPLE_US / run_us)))
        warm = run_us < LONG_US
        self._leave()
        return calls, warm, 4 * (switching + (calls + warm) * run_us / 1e6)

    def _quartet(self, calls: int, warm: bool, second_first: bool) -> tuple[float, float]:
        """(first, second): geometric means of two samples each, in ABBA order."""
        samples: tuple[list[float], list[float]] = ([], [])
        for one in (second_first, not second_first, not second_first, second_first):
            side = self._sides[one]
            side.enter()
            if warm:
                side.run()
            samples[one].append(self._sample_us(side, calls))
        self._leave()
        first, second = (math.sqrt(math.prod(of)) for of in samples)
        return first, second

    def _sample_us(self, side: Side, calls: int) -> float:
        synchronize()
        start = time.perf_counter_ns()
        for _ in range(calls):
            side.run()
        synchronize()
        return (time.perf_counter_ns() - start) / 1000.0 / calls


def synchronize() -> None:
    """Wait for the device, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
