"""Comparing a valid candidate with eager, twice where it wins.

Scope `K` is device time on CUDA, both sides as replays of a graph. Scope `O` is operator time on
the cpu backend: the candidate is charged what a hit costs in the dispatch shim, measured beside it.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from kernelforge_engine.calls import Backend, Json
from kernelforge_engine.dispatch.overhead import hit_us
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.pool.orders import Timed
from kernelforge_engine.records import Artifact, Outcome, Status, Timing, Verdict
from kernelforge_engine.statistics import allowed
from kernelforge_engine.worker.arena import POISONS
from kernelforge_engine.worker.bench import Bench, CandidateFailed, once_more
from kernelforge_engine.worker.decision import PROTOCOLS, confirmed, far_off, unfit
from kernelforge_engine.worker.eager import EagerSide
from kernelforge_engine.worker.roofline import Roofline
from kernelforge_engine.worker.rules import judge
from kernelforge_engine.worker.spares import SPARES
from kernelforge_engine.worker.surroundings import Surroundings, disturbances
from kernelforge_engine.worker.tensors import copied
from kernelforge_engine.worker.traffic import least_bytes
from kernelforge_engine.worker.trial import Trial, undisturbed
from kernelforge_engine.worker.verdicts import Case, Evaluation, same_bits

TIMED_AT = 0
SINGLES = 3
MOST_SETS = {"cpu": 64, "cuda": 128}  # a pass over so many short calls is long enough to time
MOST_SET_BYTES = 8 << 30
CACHES = {
    "cpu": 3,
    "cuda": 5,
}  # of the last cache: nothing is left in it of a set when it returns
LONG_US = 1000.0  # a pass of eager's that is not made once more only to hide a launch
BUSY_BYTES = 512 << 20  # to fill so much takes more than 100 us, several times what a launch does
PHYSICS_SLACK = 0.9
DEFAULT_CACHE_BYTES = 32 << 20


class Comparison:
    """One candidate against eager on the captured example, as attempt number `attempt`."""

    def __init__(
        self, case: Case, secret: bytes, roofline: Roofline, shims: Path, attempt: int
    ) -> None:
        self._case, self._call = case, case.variant.call
        self._protocol = PROTOCOLS[self._call.backend]
        self._coin = random.Random(secret)  # noqa: S311  an order of samples, not a secret
        self._secret = secret
        self._roofline = roofline
        self._shims = shims
        self._attempt = attempt
        self._judged: tuple[torch.Tensor, ...] = ()

    def timed(
        self, plan: ResolvedPlan, artifact: Artifact, environment: Mapping[str, str]
    ) -> Timed:
        """The timing, or the verdict of a candidate that no longer behaves.

        A win is measured again in a fresh Runner, against eager on fresh memory.
        """
        evaluation = Evaluation(self._case, self._secret)
        once = partial(self._once, plan, artifact, environment, evaluation)
        try:
            timing = once_more(once)
            if timing.outcome == Outcome.FASTER:
                timing = confirmed(timing, once_more(once))
        except CandidateFailed as failure:
            return Timed(timing=None, verdict=failure.verdict)
        evidence: dict[str, Json] = {**timing.evidence, "attempt": self._attempt}
        return Timed(timing=replace(timing, evidence=evidence))

    def _once(
        self,
        plan: ResolvedPlan,
        artifact: Artifact,
        environment: Mapping[str, str],
        evaluation: Evaluation,
    ) -> Timing:
        """One comparison; the outputs of the example are judged before the samples and after."""
        eager_us, device = self._case.variant.eager_us, self._case.device
        with Bench(self._call, plan, eager_us, environment, device, TIMED_AT) as bench:
            _ = evaluation.exact, evaluation.captured  # while the Runner starts
            bench.load(artifact)
            outputs = self._checked(bench, evaluation)
            timing = self._compare(bench, plan, outputs)
            self._checked(bench, evaluation)
            return timing

    def _checked(self, bench: Bench, evaluation: Evaluation) -> tuple[torch.Tensor, ...]:
        """The outputs of one run on the captured example, judged; the bits of a run that was judged
        before need no second judgement."""
        outputs = bench.run(self._case.captured, POISONS[0])
        if self._judged and same_bits(self._judged, outputs):
            return outputs
        finding = judge(outputs, evaluation.captured, self._case.terms, evaluation.exact)
        if finding:
            raise CandidateFailed(
                Verdict(
                    status=Status.WRONG_VALUES,
                    reason=f"its timed output breaks rule {finding.rule}: {finding.text}",
                    evidence={"draw": "captured", "rule": finding.rule, **finding.evidence},
                )
            )
        self._judged = outputs
        return outputs

    def _compare(
        self, bench: Bench, plan: ResolvedPlan, outputs: tuple[torch.Tensor, ...]
    ) -> Timing:
        SPARES.settle()
        sets = self._sets(plan)
        busy = self._busy_bytes(sets)
        eager = EagerSide(
            self._call,
            self._case.captured,
            sets,
            self._calls(self._case.variant.eager_us, sets),
            self._case.variant.parameters,
            busy,
        )
        calls = self._calls(self._single_us(bench), sets)
        bench.prepare_timing(self._case.captured, min(sets, calls), calls, busy)
        dispatch_us = self._dispatch_us(sets)

        def candidate() -> float:
            us = bench.sample(calls) + dispatch_us
            self._left(bench, self._coin.randrange(min(sets, calls)), outputs)
            return us

        on_cpu = self._call.backend == "cpu"
        surroundings = Surroundings(self._case.device)
        timing = Trial(
            eager=eager.sample,
            other=candidate,
            protocol=self._protocol,
            alpha=allowed(self._attempt),
            coin=self._coin,
            disturbances=partial(disturbances, bench.pid) if on_cpu else undisturbed,
            core_mhz=surroundings.core_mhz,
        ).run()
        for index in range(min(sets, calls)):
            self._left(bench, index, outputs)
        if self._beats_physics(timing.candidate_us, plan, sets):
            timing = replace(timing, outcome=Outcome.IMPLAUSIBLE)
        if timing.outcome == Outcome.FASTER and not far_off(timing):
            spoilt = surroundings.spoilt
            timing = unfit(timing, spoilt) if spoilt else timing
        evidence: dict[str, Json] = {
            "sets": sets,
            "calls_per_sample": calls,
            "graph": eager.graphed,
            "dispatch_us": round(dispatch_us, 3),
            "machine": surroundings.record(),
        }
        return replace(timing, evidence={**timing.evidence, **evidence})

    def _left(self, bench: Bench, index: int, expected: tuple[torch.Tensor, ...]) -> None:
        """Look at what the last sample left in a set, which held poison before its last pass: a
        candidate that only worked while it was watched, or once for each buffer, leaves that.

        Raises:
            CandidateFailed: the set holds something else than the judged output.
        """
        if not same_bits(expected, bench.collect(index, self._case.device)):
            raise CandidateFailed(
                Verdict(
                    status=Status.WRONG_VALUES,
                    reason="a timed call left another output than the judged one: it does not "
                    "do its work on every call",
                    evidence={"set": index},
                )
            )

    def _dispatch_us(self, sets: int) -> float:
        """What a hit costs besides its kernel; a graph replay on CUDA has no such cost."""
        if self._case.device.type == "cuda":
            return 0.0
        return hit_us(self._call, [copied(t) for t in self._case.captured], sets, self._shims)

    def _sets(self, plan: ResolvedPlan) -> int:
        size = sum(b.bytes for b in plan.buffers)
        return rotating(self._call.backend, self._case.device, size)

    def _calls(self, us: float, sets: int) -> int:
        """Calls of `us` each that fill a sample; whole turns of the sets where they are short."""
        calls = max(1, math.ceil(self._protocol.sample_us / us))
        return math.ceil(calls / sets) * sets if calls >= sets else calls

    def _busy_bytes(self, sets: int) -> int:
        """What both sides fill before a timed pass; 0 where another pass is the shorter wait."""
        pass_us = self._case.variant.eager_us * sets
        is_long = self._case.device.type == "cuda" and pass_us >= LONG_US
        return BUSY_BYTES if is_long else 0

    def _single_us(self, bench: Bench) -> float:
        """The candidate's time in a sample of one call, the best of some."""
        bench.prepare_timing(self._case.captured, 1, 1)
        return min(bench.sample(1) for _ in range(SINGLES))

    def _beats_physics(self, candidate_us: float, plan: ResolvedPlan, sets: int) -> bool:
        """Whether a time is below what its bytes need; within a cache there is no such floor."""
        device = self._case.device
        size = sets * sum(b.bytes for b in plan.buffers)
        if device.type != "cuda" or size <= 2 * cache_bytes(device):
            return False
        return candidate_us < PHYSICS_SLACK * least_bytes(self._call) / self._roofline.bytes_per_us


def rotating(backend: Backend, device: torch.device, size: int) -> int:
    """How many buffer sets of so many bytes are needed to outgrow the last-level cache."""
    wanted = math.ceil(CACHES[backend] * cache_bytes(device) / max(1, size))
    return max(1, min(MOST_SETS[backend], wanted, MOST_SET_BYTES // max(1, size)))


def cache_bytes(device: torch.device) -> int:
    """The size of the cache that lies before memory."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text(encoding="ascii")
        return int(text.strip().removesuffix("K")) * 1024
    except (OSError, ValueError):
        return DEFAULT_CACHE_BYTES
