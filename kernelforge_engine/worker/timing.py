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

from kernelforge_engine.calls import Json
from kernelforge_engine.dispatch.overhead import hit_us
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.pool.orders import Timed
from kernelforge_engine.records import Artifact, Outcome, Status, Timing, Verdict
from kernelforge_engine.statistics import FEWEST, paired_interval
from kernelforge_engine.worker.arena import POISONS
from kernelforge_engine.worker.bench import Bench, CandidateFailed, once_more
from kernelforge_engine.worker.eager import EagerSide
from kernelforge_engine.worker.roofline import Roofline
from kernelforge_engine.worker.rules import judge
from kernelforge_engine.worker.tensors import copied
from kernelforge_engine.worker.traffic import least_bytes
from kernelforge_engine.worker.verdicts import Case, Evaluation, same_bits

CONFIDENCE = 0.99
TIMED_AT = 0
SINGLES = 3
MOST_SETS = 64
MOST_SET_BYTES = 8 << 30
PHYSICS_SLACK = 0.9
DEFAULT_CACHE_BYTES = 32 << 20
LOOK_SECONDS = 5.0  # a busy machine, or a slow call, gets fewer quartets and a wider interval


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The constants of one backend: sample length, quartets per look, the margin of a win, and how
    far the ends of an interval may lie apart before it says nothing."""

    sample_us: float
    quartets: int
    looks: int
    delta: float
    spread: float
    scope: str


PROTOCOLS = {
    "cuda": Protocol(sample_us=200.0, quartets=50, looks=2, delta=0.01, spread=1.2, scope="K"),
    "cpu": Protocol(sample_us=4000.0, quartets=30, looks=3, delta=0.05, spread=1.6, scope="O"),
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
            eager_us = self._case.variant.eager_us
            with Bench(self._call, plan, eager_us, environment, TIMED_AT) as bench:
                evaluation = Evaluation(self._case, self._secret)
                _ = evaluation.exact, evaluation.captured  # while the Runner starts
                bench.load(artifact, self._case.device)
                outputs = self._checked(bench, evaluation)
                timing = self._compare(bench, plan, outputs)
                self._checked(bench, evaluation)
                return Timed(timing=timing)

        try:
            return once_more(in_a_runner)
        except CandidateFailed as failure:
            return Timed(timing=None, verdict=failure.verdict)

    def _checked(self, bench: Bench, evaluation: Evaluation) -> tuple[torch.Tensor, ...]:
        """The outputs of one run on the captured example, judged."""
        outputs = bench.run(self._case.captured, POISONS[0])
        finding = judge(outputs, evaluation.captured, self._case.terms, evaluation.exact)
        if finding:
            raise CandidateFailed(
                Verdict(
                    status=Status.WRONG_VALUES,
                    reason=f"its timed output breaks rule {finding.rule}: {finding.text}",
                    evidence={"draw": "captured", "rule": finding.rule, **finding.evidence},
                )
            )
        return outputs

    def _compare(
        self, bench: Bench, plan: ResolvedPlan, outputs: tuple[torch.Tensor, ...]
    ) -> Timing:
        sets = self._sets(plan)
        eager = EagerSide(
            self._call, self._case.captured, sets, self._calls(self._case.variant.eager_us, sets)
        )
        calls = self._calls(self._single_us(bench), sets)
        bench.prepare_timing(self._case.captured, sets, calls)
        dispatch_us = self._dispatch_us(sets)
        pairs = self._quartets(eager, bench, calls, dispatch_us)
        timing = self._decided(pairs, plan, sets)
        for _ in range(self._protocol.looks - 1):
            if timing.outcome == Outcome.INCONCLUSIVE:
                pairs += self._quartets(eager, bench, calls, dispatch_us)
                timing = self._decided(pairs, plan, sets)
        self._timed_outputs_hold(bench, sets, calls, outputs)
        evidence: dict[str, Json] = {
            "sets": sets,
            "calls_per_sample": calls,
            "graph": eager.graphed,
            "dispatch_us": round(dispatch_us, 3),
        }
        return replace(timing, evidence={**timing.evidence, **evidence})

    def _timed_outputs_hold(
        self, bench: Bench, sets: int, calls: int, expected: tuple[torch.Tensor, ...]
    ) -> None:
        """Poison every set again, take one more sample, and look at what it left in each: a
        candidate that only worked while it was watched, or once for each buffer, leaves poison.

        Raises:
            CandidateFailed: a set holds something else than the judged output.
        """
        if self._call.mutated:
            return  # its inputs change with every call, so no set can be compared
        bench.prepare_timing(self._case.captured, sets, calls)
        bench.sample(calls)
        for index in range(min(sets, calls)):
            if not same_bits(expected, bench.collect(index, self._case.device)):
                raise CandidateFailed(
                    Verdict(
                        status=Status.WRONG_VALUES,
                        reason="a timed call left another output than the judged one: it does not "
                        "do its work on every call",
                        evidence={"set": index, "of": sets},
                    )
                )

    def _dispatch_us(self, sets: int) -> float:
        """What a hit costs besides its kernel; a graph replay on CUDA has no such cost."""
        if self._case.device.type == "cuda":
            return 0.0
        return hit_us(self._call, [copied(t) for t in self._case.captured], sets, self._shims)

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
        """The candidate's time in a sample of one call, the best of some."""
        bench.prepare_timing(self._case.captured, 1, 1)
        return min(bench.sample(1) for _ in range(SINGLES))

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
        if self._beats_physics(candidate_us, plan, sets):
            return Outcome.IMPLAUSIBLE
        if high > low * self._protocol.spread:
            return Outcome.INCONCLUSIVE
        if low >= 1 + self._protocol.delta:
            return Outcome.FASTER
        if high <= 1 - self._protocol.delta:
            return Outcome.SLOWER
        return Outcome.INCONCLUSIVE

    def _beats_physics(self, candidate_us: float, plan: ResolvedPlan, sets: int) -> bool:
        """Whether a time is below what its bytes need; within a cache there is no such floor."""
        device = self._case.device
        size = sets * sum(b.bytes for b in plan.buffers)
        if device.type != "cuda" or size <= 2 * cache_bytes(device):
            return False
        return candidate_us < PHYSICS_SLACK * least_bytes(self._call) / self._roofline.bytes_per_us


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
