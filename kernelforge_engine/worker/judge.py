"""The Judge: the long-lived child that owns references, seeds and verdicts."""

import logging
from pathlib import Path

import torch

from kernelforge_engine.exchanges import Notice
from kernelforge_engine.pool.adopt import channel
from kernelforge_engine.pool.orders import (
    JudgeCommand,
    Judged,
    JudgeOrder,
    Probed,
    ProbeOrder,
    Timed,
    TimeOrder,
)
from kernelforge_engine.worker.machine import probe
from kernelforge_engine.worker.roofline import Roofline
from kernelforge_engine.worker.serve import serve
from kernelforge_engine.worker.timing import Comparison
from kernelforge_engine.worker.verdicts import Case, Evaluation


class Judge:
    """Answers orders; keeps the last variant's example on its device between them."""

    def __init__(self) -> None:
        self._case: Case | None = None
        self._rooflines: dict[torch.device, Roofline] = {}

    def answer(
        self, order: ProbeOrder | JudgeOrder | TimeOrder, _notice: Notice
    ) -> Probed | Judged | Timed:
        """The reply to one order."""
        if isinstance(order, ProbeOrder):
            return probe()
        case = self._case_of(order)
        secret = bytes.fromhex(order.secret)
        if isinstance(order, JudgeOrder):
            evaluation = Evaluation(case, secret)
            return Judged(verdict=evaluation.verdict(order.plan, order.artifact, order.environment))
        roofline = self._rooflines.setdefault(case.device, Roofline(case.device))
        comparison = Comparison(case, secret, roofline, Path(order.shims))
        return comparison.timed(order.plan, order.artifact, order.environment)

    def _case_of(self, order: JudgeOrder | TimeOrder) -> Case:
        if self._case is None or self._case.variant != order.variant:
            self._case = None
            self._case = Case(order.variant, Path(order.blobs))
        return self._case


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    ours, _ = channel()
    serve(ours, JudgeCommand, Judge().answer)
