"""Comparing a valid candidate with eager: interleaved quartets, paired ratios, an interval.

Scope `K` is device time on CUDA, both sides as replays of a graph. Scope `O` is operator time on
the cpu backend: the candidate is charged what a hit costs in the dispatch shim, measured beside it.
"""

import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import torch

from kernelforge_engine.dispatch.overhead import hit_us
from kernelforge_engine.pool.orders import Timed
from kernelforge_engine.records import (
    Artifact,
    Json,
    Outcome,
    ResolvedPlan,
    Status,
    Timing,
    Verdict,
)
from kernelforge_engine.statistics import FEWEST, paired_interval
from kernelforge_engine.worker.arena import POISONS
from kernelforge_engine.worker.bench import Bench, CandidateFailed, once_more
from kernelforge_engine.worker.eager import EagerSide
from kernelforge_engine.worker.reference import expect
from kernelforge_engine.worker.roofline import Roofline, call_bytes
from kernelforge_engine.worker.rules import judge
from kernelforge_engine.worker.tensors import copied
from kernelforge_engine.worker.verdicts import Case, Evaluation

CONFIDENCE = 0.99
MOST_SETS = 64
MOST_SET_BYTES = 8 << 30
PHYSICS_SLACK = 0.9
DEFAULT_CACHE_BYTES = 32 << 20
LOOK_SECONDS = 5.0  # a busy machine, or a slow call, gets fewer quartets and a wider interval


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The constants of one backend: sample length, quartets per look, and the margin of a win."""

    sample_us: float
    quartets: int
    looks: int
    delta: float
    scope: str


PROTOCOLS = {
    "cuda": Protocol(sample_us=200.0, quartets=50, looks=2, delta=0.01, scope="K"),
    "cpu": Protocol(sample_us=4000.0, quartets=30, looks=3, delta=0.05, scope="O"),
}


class Comparison:
    """One candidate against eager on the captured example."""

    def __init__(self, case: Case, secret: bytes, roofline: Roofline, shims: Path) -> None:
        self._case, self._call = case, case.variant.call
        self._protocol = PROTOCOLS[self._call.backend]
        self._coin = random.Random(secret)  # noqa: S311  an order of samples, not a secret
        self._secret = secret
        self._roofline = roofline
        self._shims = shims

    def timed(
        self, plan: ResolvedPlan, artifact: Artifact, environment: Mapping[str, str]
    ) -> Timed:
        """The timing, or the verdict of a candidate that no longer behaves.

        The outputs of the example are judged before the samples and after them.
        """

        def in_a_runner() -> Timed:
            with Bench(self._call, plan, self._case.variant.eager_us, environment) as bench:
                self._expect()  # while the Runner starts
                bench.load(artifact, self._case.device)
                self._check(bench)
                timing = self._compare(bench, plan)
                self._check(bench)
                return Timed(timing=timing)

        try:
            return once_more(in_a_runner)
        except CandidateFailed as failure:
            return Timed(timing=None, verdict=failure.verdict)

    def _expect(self) -> None:
        self._exact = Evaluation(self._case, self._secret).exact
        self._expected = expect(self._call, self._case.captured)

    def _check(self, bench: Bench) -> None:
        inputs = self._case.captured
        outputs = bench.run(inputs, POISONS[0])
        finding = judge(outputs, self._expected, self._case.terms, self._exact)
        if finding:
            raise CandidateFailed(
                Verdict(
                    status=Status.WRONG_VALUES,
                    reason=f"its timed output breaks rule {finding.rule}: {finding.text}",
                    evidence={"draw": "captured", "rule": finding.rule, **finding.evidence},
                )
            )

    def _compare(self, bench: Bench, plan: ResolvedPlan) -> Timing:
        sets = self._sets(plan)
        eager = EagerSide(
            self._call, self._case.captured, sets, self._calls(self._case.variant.eager_us, sets)
        )
        calls = self._calls(self._single_us(bench), sets)
        bench.prepare_timing(sets, calls)
        dispatch_us = self._dispatch_us()
        pairs: list[tuple[float, float]] = []
        timing = None
        for _ in range(self._protocol.looks):
            pairs += self._quartets(eager, bench, calls, dispatch_us)
            timing = self._decided(pairs, plan, sets)
            if timing.outcome != Outcome.INCONCLUSIVE:
                break
        assert timing is not None  # noqa: S101  looks is at least one
        evidence: dict[str, Json] = {
            "sets": sets,
            "calls_per_sample": calls,
            "graph": eager.graphed,
            "dispatch_us": round(dispatch_us, 3),
        }
        return replace(timing, evidence={**timing.evidence, **evidence})

    def _dispatch_us(self) -> float:
        """What a hit costs besides its kernel; a graph replay on CUDA has no such cost."""
        if self._case.device.type == "cuda":
            return 0.0
        return hit_us(self._call, [copied(t) for t in self._case.captured], self._shims)

    def _sets(self, plan: ResolvedPlan) -> int:
        """Buffer sets that together outgrow the last-level cache."""
        size = max(1, sum(b.bytes for b in plan.buffers))
        wanted = math.ceil(3 * cache_bytes(self._case.device) / size)
        return max(1, min(MOST_SETS, wanted, MOST_SET_BYTES // size))

    def _calls(self, us: float, sets: int) -> int:
        """Calls of `us` each that fill a sample; whole turns of the sets where they are short."""
        calls = max(1, math.ceil(self._protocol.sample_us / us))
        return math.ceil(calls / sets) * sets if calls >= sets else calls

    def _single_us(self, bench: Bench) -> float:
        """The candidate's time in a sample of one call."""
        bench.prepare_timing(1, 1)
        return bench.sample(1)

    def _quartets(
        self, eager: EagerSide, bench: Bench, calls: int, dispatch_us: float
    ) -> list[tuple[float, float]]:
        """(eager, candidate) means of quartets, ABBA or BAAB by coin, while time allows."""
        found: list[tuple[float, float]] = []
        deadline = time.monotonic() + LOOK_SECONDS
        for _ in range(self._protocol.quartets):
            if time.monotonic() > deadline and len(found) >= FEWEST:
                break
            order = "ECCE" if self._coin.random() < 0.5 else "CEEC"
            times: dict[str, list[float]] = {"E": [], "C": []}
            for side in order:
                us = eager.sample() if side == "E" else bench.sample(calls) + dispatch_us
                times[side].append(us)
            found.append((_geometric(times["E"]), _geometric(times["C"])))
        return found

    def _decided(self, pairs: list[tuple[float, float]], plan: ResolvedPlan, sets: int) -> Timing:
        ratios = np.log([e / c for e, c in pairs])
        rng = np.random.default_rng(self._coin.getrandbits(64))
        # An interval at every look: the error allowed is shared among them.
        confidence = 1 - (1 - CONFIDENCE) / self._protocol.looks
        middle, low, high = (math.exp(v) for v in paired_interval(ratios, confidence, rng))
        eager_us, candidate_us = (median(side) for side in zip(*pairs, strict=True))
        return Timing(
            outcome=self._outcome(low, high, candidate_us, plan, sets),
            speedup=middle,
            low=low,
            high=high,
            eager_us=eager_us,
            candidate_us=candidate_us,
            scope=self._protocol.scope,
            evidence={"quartets": len(pairs), "confidence": confidence},
        )

    def _outcome(
        self, low: float, high: float, candidate_us: float, plan: ResolvedPlan, sets: int
    ) -> Outcome:
        floor_us = call_bytes(self._call) / self._roofline.bytes_per_us
        cold = sets * sum(b.bytes for b in plan.buffers) > 2 * cache_bytes(self._case.device)
        if self._case.device.type == "cuda" and cold and candidate_us < PHYSICS_SLACK * floor_us:
            return Outcome.IMPLAUSIBLE
        if low >= 1 + self._protocol.delta:
            return Outcome.FASTER
        if high <= 1 - self._protocol.delta:
            return Outcome.SLOWER
        return Outcome.INCONCLUSIVE


def _geometric(times: list[float]) -> float:
    return math.exp(sum(math.log(t) for t in times) / len(times))


def cache_bytes(device: torch.device) -> int:
    """The size of the cache that lies before memory."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text(encoding="ascii")
        return int(text.strip().removesuffix("K")) * 1024
    except (OSError, ValueError):
        return DEFAULT_CACHE_BYTES
