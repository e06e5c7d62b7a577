"""Judging a candidate: the captured example under two poisons, then one draw of every family."""

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import torch

from kernelforge_engine.calls import Call, Json
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.records import Artifact, Status, Variant, Verdict
from kernelforge_engine.worker.arena import POISONS
from kernelforge_engine.worker.bench import Bench, CandidateFailed, once_more
from kernelforge_engine.worker.draws import Draw, Draws, families
from kernelforge_engine.worker.reference import Expectation, expect, reduction_length
from kernelforge_engine.worker.rules import Finding, is_exact, judge
from kernelforge_engine.worker.tensors import fetch

JUDGED_AT = 16  # the alignment a variant promises, in bytes
GENERIC = "normal"  # the family on which it is decided whether the operator is exact


log = logging.getLogger(__name__)


class Case:
    """A variant with its captured example on the Judge's device, and what it expects."""

    def __init__(self, variant: Variant, blobs: Path) -> None:
        self.variant = variant
        call = variant.call
        self.device = torch.device("cuda:0" if call.backend == "cuda" else "cpu")
        self.captured = tuple(
            fetch(name, spec, blobs, self.device)
            for name, spec in zip(variant.examples[0], call.inputs, strict=True)
        )
        self.terms = reduction_length(call)

    def draws(self, secret: bytes) -> Draws:
        """Fresh draws keyed by a secret."""
        return Draws(self.captured, self.variant.call, secret)


class Evaluation:
    """One candidate against one case."""

    def __init__(self, case: Case, secret: bytes) -> None:
        self._case = case
        self._draws = case.draws(secret)
        self._call: Call = case.variant.call
        self._judged_on: list[str] = []
        self._refused_by_eager: list[str] = []

    @cached_property
    def captured(self) -> Expectation:
        """What the captured example should give."""
        return expect(self._call, self._case.captured)

    @cached_property
    def _generic(self) -> tuple[Draw, Expectation | None]:
        draw = self._draws.make(GENERIC)
        return draw, self._expected(draw)

    def _expected(self, draw: Draw) -> Expectation | None:
        """What a fresh draw should give, or None where eager itself refuses it (a probability out
        of range, an offset out of order)."""
        try:
            return expect(self._call, draw.inputs)
        except (RuntimeError, ValueError, IndexError) as error:
            log.info("eager refuses the %s draw of %s: %s", draw.family, self._call.name, error)
            return None

    @cached_property
    def exact(self) -> bool:
        """Whether the operator copies or selects, so that bit equality is asked for."""
        return is_exact(self._generic[1] or self.captured)

    def verdict(
        self, plan: ResolvedPlan, artifact: Artifact, environment: Mapping[str, str]
    ) -> Verdict:
        """Valid, or the first rule that was broken."""
        eager_us = self._case.variant.eager_us

        def in_a_runner() -> Verdict:
            with Bench(self._call, plan, eager_us, environment, JUDGED_AT) as bench:
                _ = self.exact  # while the Runner starts
                bench.load(artifact, self._case.device)
                return self._judged(bench)

        try:
            return once_more(in_a_runner)
        except CandidateFailed as failure:
            return failure.verdict

    def _judged(self, bench: Bench) -> Verdict:
        self._judged_on, self._refused_by_eager = ["captured"], []
        broken = self._captured(bench)
        for family in families(self._call)[1:]:
            broken = broken or self._family(bench, family)
        if broken:
            return broken
        return Verdict(
            status=Status.VALID,
            reason=f"every rule holds on {len(self._judged_on)} draws",
            evidence=self._evidence(bench.sandbox),
        )

    def _evidence(self, sandbox: str) -> dict[str, Json]:
        evidence: dict[str, Json] = {
            "draws": list(self._judged_on),
            "class": "exact" if self.exact else "approximate",
            "terms": self._case.terms,
            "reference": self.captured.how,
            "sandbox": sandbox,
            "tier": "C" if self._call.backend == "cpu" else "A",
        }
        if self._refused_by_eager:
            evidence["draws_eager_refuses"] = list(self._refused_by_eager)
        return evidence

    def _captured(self, bench: Bench) -> Verdict | None:
        """The captured example, run under each poison: with another one nothing may change."""
        draw = self._draws.make("captured")
        runs = [bench.run(draw.inputs, poison) for poison in POISONS]
        left = bench.arena.unwritten(runs)
        if left:
            total = sum(t.numel() for t in runs[0])
            return Verdict(
                status=Status.WRONG_STRUCTURE,
                reason=f"{left} of {total} output elements still hold what was in memory before: "
                "they were not written, or only added to",
                evidence={"draw": "captured", "unwritten": left},
            )
        broken = self._values(draw, runs[0], self.captured)
        if broken or all(same_bits(runs[0], outputs) for outputs in runs[1:]):
            return broken
        return Verdict(
            status=Status.NONDETERMINISTIC,
            reason="runs on the same inputs differ: it reads memory that nobody wrote, or depends "
            "on the order of its threads",
            evidence={"draw": "captured"},
        )

    def _family(self, bench: Bench, family: str) -> Verdict | None:
        draw, expectation = self._draw(family)
        if expectation is None:
            self._refused_by_eager.append(family)
            return None
        self._judged_on.append(family)
        return self._values(draw, bench.run(draw.inputs, POISONS[0]), expectation)

    def _draw(self, family: str) -> tuple[Draw, Expectation | None]:
        if family == GENERIC:
            return self._generic
        draw = self._draws.make(family)
        return draw, self._expected(draw)

    def _values(
        self, draw: Draw, outputs: Sequence[torch.Tensor], expectation: Expectation
    ) -> Verdict | None:
        finding = judge(outputs, expectation, self._case.terms, self.exact)
        return None if finding is None else _verdict(finding, draw)


def _verdict(finding: Finding, draw: Draw) -> Verdict:
    return Verdict(
        status=finding.status,
        reason=f"rule {finding.rule} on the {draw.family} draw: {finding.text}",
        evidence={"draw": draw.family, "rule": finding.rule, **finding.evidence},
    )


def same_bits(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> bool:
    """Whether two runs gave the same outputs, bit for bit."""
    return all(torch.equal(_bits(a), _bits(b)) for a, b in zip(first, second, strict=True))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
