"""Judging a candidate: the captured example under two poisons, then one draw of every family."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import torch

from kernelforge_engine.records import Artifact, Call, Json, ResolvedPlan, Status, Variant, Verdict
from kernelforge_engine.worker.arena import POISONS
from kernelforge_engine.worker.bench import Bench, CandidateFailed, once_more
from kernelforge_engine.worker.draws import FAMILIES, Draw, Draws
from kernelforge_engine.worker.reference import Expectation, expect, reduction_length
from kernelforge_engine.worker.rules import Finding, is_exact, judge
from kernelforge_engine.worker.tensors import fetch

GENERIC = "normal"  # the family on which it is decided whether the operator is exact


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
        return Draws(self.captured, self.variant.call.inputs, secret)


class Evaluation:
    """One candidate against one case."""

    def __init__(self, case: Case, secret: bytes) -> None:
        self._case = case
        self._draws = case.draws(secret)
        self._call: Call = case.variant.call

    @cached_property
    def _generic(self) -> tuple[Draw, Expectation]:
        draw = self._draws.make(GENERIC)
        return draw, expect(self._call, draw.inputs)

    @cached_property
    def exact(self) -> bool:
        """Whether the operator copies or selects, so that bit equality is asked for."""
        return is_exact(self._generic[1])

    def verdict(
        self, plan: ResolvedPlan, artifact: Artifact, environment: Mapping[str, str]
    ) -> Verdict:
        """Valid, or the first rule that was broken."""

        def in_a_runner() -> Verdict:
            with Bench(self._call, plan, self._case.variant.eager_us, environment) as bench:
                _ = self.exact  # while the Runner starts
                bench.load(artifact, self._case.device)
                return self._judged(bench)

        try:
            return once_more(in_a_runner)
        except CandidateFailed as failure:
            return failure.verdict

    def _judged(self, bench: Bench) -> Verdict:
        broken = self._captured(bench)
        for family in FAMILIES[1:]:
            broken = broken or self._family(bench, family)
        if broken:
            return broken
        return Verdict(
            status=Status.VALID,
            reason=f"every rule holds on {len(FAMILIES)} draws",
            evidence=self._evidence(bench.sandbox),
        )

    def _evidence(self, sandbox: str) -> dict[str, Json]:
        return {
            "draws": list(FAMILIES),
            "class": "exact" if self.exact else "approximate",
            "terms": self._case.terms,
            "reference": self._generic[1].how,
            "sandbox": sandbox,
            "tier": "C" if self._call.backend == "cpu" else "A",
        }

    def _captured(self, bench: Bench) -> Verdict | None:
        """The captured example, run twice: with other poison nothing may change."""
        draw, expectation = self._draw("captured")
        first = bench.run(draw.inputs, POISONS[0])
        second = bench.run(draw.inputs, POISONS[1])
        left = bench.arena.unwritten(first, second)
        if left:
            total = sum(t.numel() for t in first)
            return Verdict(
                status=Status.WRONG_STRUCTURE,
                reason=f"{left} of {total} output elements still hold what was in memory before: "
                "they were not written, or only added to",
                evidence={"draw": "captured", "unwritten": left},
            )
        broken = self._values(draw, first, expectation)
        if broken or all(map(_same_bits, first, second)):
            return broken
        return Verdict(
            status=Status.NONDETERMINISTIC,
            reason="two runs on the same inputs differ: it reads memory that nobody wrote, or "
            "depends on the order of its threads",
            evidence={"draw": "captured"},
        )

    def _family(self, bench: Bench, family: str) -> Verdict | None:
        draw, expectation = self._draw(family)
        outputs = bench.run(draw.inputs, POISONS[0])
        return self._values(draw, outputs, expectation)

    def _draw(self, family: str) -> tuple[Draw, Expectation]:
        if family == GENERIC:
            return self._generic
        draw = self._draws.make(family)
        return draw, expect(self._call, draw.inputs)

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


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    first, second = (t.contiguous().reshape(-1).view(torch.uint8) for t in (a, b))
    return torch.equal(first, second)
