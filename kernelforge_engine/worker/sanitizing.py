"""Sanitizers, at promotion: the candidate runs on the example and two draws while it is watched.

On the cpu backend that is a build which checks its own accesses, to which the guard bands of the
arena are forbidden, so that it also stops at a *read* outside its buffers, which leaves no trace.
On CUDA it is the cubin itself under compute-sanitizer. Only a finding is judged: what a sanitizer
cannot do here is said, and is no fault of the candidate.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelforge_engine.calls import Json
from kernelforge_engine.pool.orders import JudgeOrder
from kernelforge_engine.records import Artifact, Status, Verdict
from kernelforge_engine.worker.arena import POISONS
from kernelforge_engine.worker.bench import Bench, CandidateFailed, once_more
from kernelforge_engine.worker.draws import Draw, families
from kernelforge_engine.worker.reference import expect
from kernelforge_engine.worker.verdicts import CAPTURED, JUDGED_AT, Case
from kernelforge_engine.worker.watching import CLEAN, watched

FAMILIES = ("normal", "special")
ADDRESS = "address sanitizer"
UNDEFINED = "undefined behavior sanitizer"
# A report has to fit into the last words of a Runner, and Python itself leaks on purpose.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:print_legend=0:print_full_thread_history=0:color=never:"
    "halt_on_error=1:allocator_may_return_null=1",
}
SUMMARY = re.compile(r"^SUMMARY: AddressSanitizer: ([\w-]+)", re.MULTILINE)
RUNTIME_ERROR = re.compile(r"^\S+: runtime error: ([^:\n]+)", re.MULTILINE)
VALUES = re.compile(r"'[^']*'|(?:(?:is|with value|for type) )?-?(?:0x)?\d[\w.+-]*")
ACCESS = re.compile(r"^(READ|WRITE) of size (\d+)", re.MULTILINE)
PLACE = re.compile(r"\bcandidate\.cpp:\d+(?::\d+)?")
DID = {"READ": "reads", "WRITE": "writes", "": "reaches"}
WHERE = {
    "use-after-poison": "outside its buffers",
    "heap-buffer-overflow": "outside memory that it allocated",
    "heap-use-after-free": "memory that it has given back",
    "stack-buffer-overflow": "outside a local array",
    "global-buffer-overflow": "outside a global array",
}
ACCESSES = re.compile("out of bounds|null pointer|insufficient space")  # not arithmetic


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a sanitizer said, without addresses, values and host paths."""

    rule: str
    kind: str
    place: str
    access: str = ""
    bytes: int = 0

    @property
    def text(self) -> str:
        """The finding in words."""
        at = f" at {self.place}" if self.place else ""
        if self.rule == UNDEFINED:
            return f"undefined behavior ({self.kind}){at}"
        size = f" {self.bytes} bytes" if self.bytes else ""
        where = WHERE.get(self.kind, f"an address that is not its own ({self.kind})")
        return f"it {DID[self.access]}{size} {where}{at}"

    @property
    def status(self) -> Status:
        """The verdict that it comes to."""
        if self.rule == UNDEFINED and not ACCESSES.search(self.kind):
            return Status.WRONG_STRUCTURE
        return Status.MEMORY_VIOLATION


def sanitized(order: JudgeOrder, case: Case, secret: bytes, verdict: Verdict) -> Verdict:
    """A valid verdict with what the sanitizers say, or the one that they come to."""
    if order.variant.call.backend == "cuda":
        return _on_device(order, _Draws(case, secret), verdict)
    if order.sanitized is None:
        why = f"not run: {order.unsanitized or 'there is no instrumented build'}"
        return _with(verdict, {ADDRESS: why, UNDEFINED: why})
    draws = _Draws(case, secret)
    artifact = order.sanitized
    try:
        once_more(lambda: _run(order, artifact, draws))
    except CandidateFailed as failure:
        report = _report(failure.verdict.log)
        if report is None:
            why = f"not run to its end: {failure.verdict.reason}"
            return _with(verdict, {ADDRESS: why, UNDEFINED: why})
        return _found(report, draws.latest)
    found: dict[str, Json] = {ADDRESS: CLEAN, UNDEFINED: CLEAN, "draws": list(draws.ran)}
    return _with(verdict, found)


def _on_device(order: JudgeOrder, draws: "_Draws", verdict: Verdict) -> Verdict:
    inputs = [draw.inputs for draw in draws]
    call, environment = order.variant.call, order.environment
    every = watched(call, order.plan, order.artifact, environment, inputs)
    for one in every:
        if one.is_finding:
            return Verdict(
                status=one.status,
                reason=f"{one.tool} of compute-sanitizer: {one.said}",
                evidence={"rule": one.tool, "kernel": one.kernel},
            )
    found: dict[str, Json] = {one.tool: one.said for one in every}
    return _with(verdict, {**found, "draws": list(draws.ran)})


class _Draws:
    """The inputs that eager accepts, with what was run so far."""

    def __init__(self, case: Case, secret: bytes) -> None:
        self._case, self._call = case, case.variant.call
        self._draws = case.draws(secret)
        self.device = case.device
        self.ran: list[str] = []

    @property
    def latest(self) -> str:
        """The one that ran last."""
        return self.ran[-1] if self.ran else "while loading"

    def __iter__(self) -> Iterator[Draw]:
        self.ran = []
        for draw in self._every():
            self.ran.append(draw.family)
            yield draw

    def _every(self) -> Iterator[Draw]:
        if self._case.examples:
            yield Draw(family=CAPTURED, inputs=self._case.captured)
        for family in FAMILIES:
            if family not in families(self._call):
                continue
            draw = self._draws.make(family)
            if self._accepted(draw):
                yield draw

    def _accepted(self, draw: Draw) -> bool:
        """An index out of range is eager's to refuse, and no fault of a candidate."""
        try:
            expect(self._call, draw.inputs)
        except (RuntimeError, ValueError, IndexError):
            return False
        return True


def _run(order: JudgeOrder, artifact: Artifact, draws: _Draws) -> None:
    call, eager_us = order.variant.call, order.variant.eager_us
    environment = {**order.environment, **OPTIONS, "LD_PRELOAD": ":".join(artifact.preload)}
    with Bench(call, order.plan, eager_us, environment, draws.device, JUDGED_AT) as bench:
        bench.load(artifact)
        for draw in draws:
            bench.run(draw.inputs, POISONS[0])


def _report(words: str) -> Report | None:
    """The finding in what a Runner wrote last."""
    summary, undefined = SUMMARY.search(words), RUNTIME_ERROR.search(words)
    access, place = ACCESS.search(words), PLACE.search(words)
    at = place[0] if place else ""
    if summary:
        return Report(
            rule=ADDRESS,
            kind=summary[1],
            access=access[1] if access else "",
            bytes=int(access[2]) if access else 0,
            place=at,
        )
    if undefined:
        kind = " ".join(VALUES.sub("", undefined[1]).split())
        return Report(rule=UNDEFINED, kind=kind, place=at)
    return None


def _found(report: Report, draw: str) -> Verdict:
    evidence: dict[str, Json] = {"draw": draw, "rule": report.rule, "kind": report.kind}
    if report.place:
        evidence["at"] = report.place
    return Verdict(
        status=report.status,
        reason=f"the {report.rule} on the {draw} draw: {report.text}",
        evidence=evidence,
    )


def _with(verdict: Verdict, found: dict[str, Json]) -> Verdict:
    return replace(verdict, evidence={**verdict.evidence, "sanitizers": found})
