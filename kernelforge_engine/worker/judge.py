"""The Judge: the long-lived child that owns references, seeds and verdicts."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from kernelforge_engine.dispatch.encode import overload_of
from kernelforge_engine.exchanges import Notice
from kernelforge_engine.pool.adopt import channel
from kernelforge_engine.pool.orders import (
    JudgeCommand,
    Judged,
    JudgeOrder,
    Probed,
    ProbeOrder,
    Profiled,
    ProfileOrder,
    Timed,
    TimeOrder,
)
from kernelforge_engine.records import Status, Variant, Verdict
from kernelforge_engine.worker.health import check, is_suspect
from kernelforge_engine.worker.load import imported
from kernelforge_engine.worker.machine import probe
from kernelforge_engine.worker.profiling import profiled
from kernelforge_engine.worker.roofline import Roofline
from kernelforge_engine.worker.sanitizing import sanitized
from kernelforge_engine.worker.serve import serve
from kernelforge_engine.worker.sized import judged, timed
from kernelforge_engine.worker.spares import SPARES, Kind
from kernelforge_engine.worker.threads import THREADS
from kernelforge_engine.worker.verdicts import Case


class Judge:
    """Answers orders; keeps the last variant's example on its device between them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._case: Case | None = None
        self._rooflines: dict[torch.device, Roofline] = {}
        self._well: set[torch.device] = set()

    def answer(
        self, order: ProbeOrder | JudgeOrder | TimeOrder | ProfileOrder, _notice: Notice
    ) -> Probed | Judged | Timed | Profiled:
        """The reply to one order."""
        if isinstance(order, ProbeOrder):
            return probe()
        _import_operators(order.variant)
        case = self._case_of(order)
        if case.device not in self._well:
            check(case.device)
            self._well.add(case.device)
        if isinstance(order, ProfileOrder):
            roofline = self._roofline(case.device, Path(order.rates))
            return Profiled(profile=profiled(order, case, roofline))
        start = self._clock()
        try:
            reply = self._reply(order, case)
            reply = replace(reply, seconds=self._clock() - start)
        finally:
            SPARES.fill(Kind.of(order.variant.call, order.environment, case.device))
        if is_suspect(reply.verdict):
            self._well.discard(case.device)
        return reply

    def _reply(self, order: JudgeOrder | TimeOrder, case: Case) -> Judged | Timed:
        secret = bytes.fromhex(order.secret)
        if isinstance(order, JudgeOrder):
            with THREADS.few_for(order.variant):
                return Judged(verdict=_verdict(order, case, secret))
        cache = Path(order.shims)
        roofline = self._roofline(case.device, cache)
        return timed(order, case, secret, roofline, cache)

    def _roofline(self, device: torch.device, cache: Path) -> Roofline:
        return self._rooflines.setdefault(device, Roofline(device, cache))

    def _case_of(self, order: JudgeOrder | TimeOrder | ProfileOrder) -> Case:
        if self._case is None or self._case.variant != order.variant:
            self._case = None
            self._case = Case(order.variant, Path(order.blobs))
        return self._case


def _verdict(order: JudgeOrder, case: Case, secret: bytes) -> Verdict:
    verdict = judged(order, case, secret)
    if verdict.status == Status.VALID and order.tier == "promotion":
        verdict = sanitized(order, case, secret, verdict)
    return verdict


def _import_operators(variant: Variant) -> None:
    """Import what registers a variant's operators, unless they are there already: no operator can
    be registered twice."""
    region = variant.call.region
    steps = region.steps if region else (variant.call,)
    known = all(_is_registered(step.operator, step.overload) for step in steps)
    if variant.requires is not None and not known:
        imported(variant.requires)


def _is_registered(operator: str, overload: str) -> bool:
    try:
        overload_of(operator, overload)
    except AttributeError:
        return False
    return True


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    ours, _ = channel()
    serve(ours, JudgeCommand, Judge().answer)
