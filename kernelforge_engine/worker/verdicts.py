"""Judging a candidate: the captured examples under every poison, then one draw of every family."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path

import torch

from kernelforge_engine.calls import Call, Json
from kernelforge_engine.errors import BadOption
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.records import Artifact, Status, Tier, Variant, Verdict
from kernelforge_engine.worker.arena import POISONS
from kernelforge_engine.worker.bench import Bench, CandidateFailed, once_more
from kernelforge_engine.worker.degenerate import Spread
from kernelforge_engine.worker.draws import Draw, Draws, families
from kernelforge_engine.worker.probes import is_exact_here
from kernelforge_engine.worker.reference import Expectation, expect, reduction_length
from kernelforge_engine.worker.rules import Closest, Finding, is_exact, judge
from kernelforge_engine.worker.selection import is_selection
from kernelforge_engine.worker.spares import SPARES, Kind
from kernelforge_engine.worker.tensors import fetch, is_sample
from kernelforge_engine.worker.tiers import POLICIES

JUDGED_AT = 16  # the alignment a variant promises, in bytes
CAPTURED = "captured"
GENERIC = "normal"  # the family on which it is decided whether the operator is exact


log = logging.getLogger(__name__)


class Case:
    """A variant on the Judge's device: its captured examples, and what its outputs sum.

    A held-out size of a shape family has no example: `like` is a case whose values it draws.
    """

    def __init__(self, variant: Variant, blobs: Path, like: "Case | None" = None) -> None:
        self.variant = variant
        call = variant.call
        self.device = torch.device("cuda:0" if call.backend == "cuda" else "cpu")
        self.examples = tuple(
            tuple(
                fetch(name, spec, blobs, self.device)
                for name, spec in zip(names, call.inputs, strict=True)
            )
            for names in variant.examples
        )
        self._like = like
        self.terms = reduction_length(call)

    @property
    def captured(self) -> tuple[torch.Tensor, ...]:
        """The first captured example."""
        return self.examples[0]

    @property
    def sampled(self) -> list[str]:
        """The inputs of which a capture kept a sample of the values only."""
        names = self.variant.examples[:1]
        return [f"in{i}" for example in names for i, n in enumerate(example) if is_sample(n)]

    def draws(self, secret: bytes) -> Draws:
        """Fresh draws keyed by a secret."""
        source = self._like or self
        return Draws(
            source.captured,
            source.variant.call,
            self.variant.call,
            secret,
            self.variant.parameters,
        )


class Evaluation:
    """One candidate against one case, on the families of draws of a tier or on those that are
    `wanted`."""

    def __init__(
        self,
        case: Case,
        secret: bytes,
        wanted: Sequence[str] | None = None,
        tier: Tier = "full",
    ) -> None:
        self._case = case
        self._draws = case.draws(secret)
        self._call: Call = case.variant.call
        self._tier, self._policy = tier, POLICIES[tier]
        known = families(self._call, case.variant.parameters)[1:]
        wanted = self._policy.families if wanted is None else wanted
        self._families = known if wanted is None else [f for f in wanted if f in known]
        self._judged_on: list[str] = []
        self._refused_by_eager: list[str] = []
        self._closest: Closest = {}

    @cached_property
    def captured(self) -> Expectation:
        """What the first captured example should give."""
        return expect(self._call, self._case.captured)

    @cached_property
    def _generic(self) -> tuple[Draw, Expectation | None]:
        draw = self._draws.make(GENERIC)
        return draw, self._expected(draw)

    def _expected(self, draw: Draw) -> Expectation | None:
        """What a fresh draw should give, or None where eager itself refuses it (a probability out
        of range, an offset out of order) or returns tensors of another size."""
        try:
            expectation = expect(self._call, draw.inputs)
        except (RuntimeError, ValueError, IndexError) as error:
            log.info("eager refuses the %s draw of %s: %s", draw.family, self._call.name, error)
            return None
        shapes = [tuple(t.shape) for t in expectation.eager]
        return expectation if shapes == [o.tensor.shape for o in self._call.outputs] else None

    @cached_property
    def typical(self) -> Expectation | None:
        """What tells most about the operator, None where eager takes no draw and there is no
        captured example: such a case cannot be judged."""
        if self._generic[1] is not None:
            return self._generic[1]
        if self._case.examples:
            return self.captured
        return next((e for _, e in self._fresh() if e is not None), None)

    @cached_property
    def exact(self) -> bool:
        """Whether the operator copies or selects, so that bit equality is asked for."""
        return self.typical is not None and is_exact(self.typical)

    def verdict(
        self, plan: ResolvedPlan, artifact: Artifact, environment: Mapping[str, str]
    ) -> Verdict:
        """Valid, or the first rule that was broken."""
        eager_us = self._case.variant.eager_us

        def in_a_runner() -> Verdict:
            device = self._case.device
            with Bench(self._call, plan, eager_us, environment, device, JUDGED_AT) as bench:
                _ = self.exact  # while the Runner starts
                bench.load(artifact)
                SPARES.fill(Kind.of(self._call, environment, device))
                return self._judged(bench)

        try:
            return once_more(in_a_runner)
        except CandidateFailed as failure:
            return failure.verdict

    def _judged(self, bench: Bench) -> Verdict:
        self._judged_on, self._refused_by_eager, self._closest = [], [], {}
        spread = Spread()
        for draw, expectation in chain(self._examples(), self._fresh()):
            if expectation is None:
                self._refused_by_eager.append(draw.family)
                continue
            first = not self._judged_on
            self._judged_on.append(draw.family)
            thorough = first or draw.family.startswith(CAPTURED)
            broken = (self._poisoned if thorough else self._once)(bench, draw, expectation)
            if not broken and draw.family in (CAPTURED, GENERIC):
                broken = self._repeated(bench, draw)
            if broken:
                return broken
            if self._policy.telling:
                spread.add(expectation)
        if outputs := spread.degenerate():
            raise _degenerate(outputs)
        return Verdict(
            status=Status.VALID,
            reason=f"every rule holds on {len(self._judged_on)} draws",
            evidence=self._evidence(bench.sandbox),
        )

    def _evidence(self, sandbox: str) -> dict[str, Json]:
        evidence: dict[str, Json] = {
            "draws": list(self._judged_on),
            "class": self._class,
            "policy": self._tier,
            "terms": self._case.terms,
            "reference": self.typical.how if self.typical else "none",
            "sandbox": sandbox,
            "isolation": "C" if self._call.backend == "cpu" else "A",
        }
        evidence.update(self._closest)
        if self._policy.repeats:
            evidence["repeats"] = self._policy.repeats
        if self._refused_by_eager:
            evidence["draws_eager_refuses"] = list(self._refused_by_eager)
        if self._case.sampled:
            evidence["sampled"] = list(self._case.sampled)
        return evidence

    @property
    def _class(self) -> str:
        """What the operator does, which decides the rules it is held to."""
        if is_selection(self._call):
            return "selection"
        return "exact" if self.exact else "approximate"

    def _examples(self) -> Iterator[tuple[Draw, Expectation | None]]:
        for number, inputs in enumerate(self._case.examples, 1):
            name = CAPTURED if number == 1 else f"{CAPTURED} {number}"
            expectation = self.captured if number == 1 else expect(self._call, inputs)
            yield Draw(family=name, inputs=inputs), expectation

    def _fresh(self) -> Iterator[tuple[Draw, Expectation | None]]:
        for number in range(self._policy.draws):
            for family in self._families:
                if family == GENERIC and not number:
                    yield self._generic
                else:
                    draw = self._draws.make(family, number)
                    yield draw, self._expected(draw)

    def _poisoned(self, bench: Bench, draw: Draw, expectation: Expectation) -> Verdict | None:
        """One draw, run under each poison: with another one nothing may change."""
        runs = [bench.run(draw.inputs, poison) for poison in POISONS]
        left = bench.arena.unwritten(runs)
        if left:
            total = sum(t.numel() for t in runs[0])
            return Verdict(
                status=Status.WRONG_STRUCTURE,
                reason=f"{left} of {total} output elements still hold what was in memory before: "
                "they were not written, or only added to",
                evidence={"draw": draw.family, "unwritten": left},
            )
        broken = self._values(draw, runs[0], expectation) or self._remembering(bench, draw, runs[0])
        if broken or all(same_bits(runs[0], outputs) for outputs in runs[1:]):
            return broken
        return Verdict(
            status=Status.NONDETERMINISTIC,
            reason="runs on the same inputs differ: it reads memory that nobody wrote, or depends "
            "on the order of its threads",
            evidence={"draw": draw.family},
        )

    def _remembering(
        self, bench: Bench, draw: Draw, first: Sequence[torch.Tensor]
    ) -> Verdict | None:
        """Two more runs, for whoever does its work only where it finds poison: on memory that looks
        like results, and once more on what that run left, with some elements changed."""
        generator = self._draws.generator("memory", 0, self._case.device)
        background = bench.arena.plausible(generator)
        for outputs in (
            bench.run(draw.inputs, background),
            bench.again(draw.inputs, background, generator),
        ):
            if not same_bits(first, outputs):
                return Verdict(
                    status=Status.NONDETERMINISTIC,
                    reason="what is in its outputs or workspaces before a run changes the result: "
                    "it must compute all of it on every call",
                    evidence={"draw": draw.family},
                )
        return None

    def _once(self, bench: Bench, draw: Draw, expectation: Expectation) -> Verdict | None:
        return self._values(draw, bench.run(draw.inputs, POISONS[0]), expectation)

    def _repeated(self, bench: Bench, draw: Draw) -> Verdict | None:
        """More runs of one draw where the policy asks for them: all must leave the same bits."""
        if not self._policy.repeats:
            return None
        first = bench.run(draw.inputs, POISONS[0])
        for number in range(self._policy.repeats):
            poison = POISONS[number % len(POISONS)]
            if not same_bits(first, bench.run(draw.inputs, poison)):
                return Verdict(
                    status=Status.NONDETERMINISTIC,
                    reason="of many runs on the same inputs one differs",
                    evidence={"draw": draw.family, "run": number + 1},
                )
        return None

    def _values(
        self, draw: Draw, outputs: Sequence[torch.Tensor], expectation: Expectation
    ) -> Verdict | None:
        exact = self.exact or is_exact_here(self._call, draw.family, expectation)
        finding = judge(outputs, expectation, self._case.terms, exact, self._closest)
        return None if finding is None else _verdict(finding, draw)


def _degenerate(outputs: Sequence[int]) -> BadOption:
    names = ", ".join(f"out{index}" for index in outputs)
    return BadOption(
        field="tier",
        value="promotion",
        why=f"on every draw {names} is nearly one value, and a kernel that writes it would pass",
        accepted="full, or a capture on inputs for which the operator does something",
    )


def _verdict(finding: Finding, draw: Draw) -> Verdict:
    times = finding.times
    much = f", {times:.3g} times what is allowed" if times and times > 0 else ""
    index = finding.evidence.get("index")
    where = f" at {index} of out{finding.evidence['output']}" if index else ""
    return Verdict(
        status=finding.status,
        reason=f"rule {finding.rule} on the {draw.family} draw: {finding.text}{much}{where}",
        evidence={"draw": draw.family, "rule": finding.rule, **finding.evidence},
    )


def same_bits(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> bool:
    """Whether two runs gave the same outputs, bit for bit."""
    return all(torch.equal(_bits(a), _bits(b)) for a, b in zip(first, second, strict=True))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
