"""The measurement child: a user's model with and without a cast, in a process of its own."""

from collections.abc import Callable, Collection
from itertools import groupby
from pathlib import Path

import numpy as np
import torch

from kernelforge_engine import cast as casts
from kernelforge_engine.exchanges import Notice, Progress
from kernelforge_engine.measurements import Comparison, KernelSaving, Measurement
from kernelforge_engine.pool.adopt import channel
from kernelforge_engine.pool.orders import Measured, MeasureOrder
from kernelforge_engine.worker.budget import Budget, OutOfTime
from kernelforge_engine.worker.load import load
from kernelforge_engine.worker.measure import Subject, attribute, compare, run_hits
from kernelforge_engine.worker.modes import NoSuchMode, prepared
from kernelforge_engine.worker.prediction import Hits
from kernelforge_engine.worker.serve import serve

SEED = 0  # of the order of samples and the bootstrap; timings differ from run to run anyway

Step = Callable[[str], None]


def measure(order: MeasureOrder, notice: Notice) -> Measured:
    """Load the model, then the cast on the model's device, then compare."""
    notice(Progress(done=0, total=1, text="loading the model"))
    loaded = load(order.model)
    loaded.run()
    if loaded.device.type == "cuda":
        torch.cuda.set_device(loaded.device)
    notice(Progress(done=0, total=1, text="loading the cast"))
    cast = casts.load(Path(order.cast), cache=Path(order.cache), trusted=order.trusted)
    subject = Subject(model=loaded.model, sets=loaded.sets, cast=cast, device=loaded.device)
    return Measured(measurement=Measuring(subject, order, notice).run())


class Measuring:
    """One order, step by step; `kernels` is what each node serves in one run."""

    def __init__(self, subject: Subject, order: MeasureOrder, notice: Notice) -> None:
        self._subject, self._order, self._notice = subject, order, notice
        self._rng = np.random.default_rng(SEED)
        self.kernels = _by_node(subject) if order.kernels else []
        self._total = len(order.modes) + len(self.kernels)
        self._budget = Budget(order.seconds, self._total)
        self._done = 0

    def run(self) -> Measurement:
        """The modes, and what each kernel saves; kernels first where those that make the model
        slower are left out of the modes."""
        kernels = self._dropping() if self._order.drop else []
        dropped = [k.node_id for k in kernels if k.slows]
        rows, failed = self._compared(dropped)
        if self.kernels and not self._order.drop:
            kernels = [self._attributed(served, []) for served in self.kernels]
        self._say("compared")
        return Measurement(
            rows=tuple(rows), failed=failed, kernels=tuple(kernels), dropped=tuple(dropped)
        )

    def _compared(self, dropped: Collection[str]) -> tuple[list[Comparison], dict[str, str]]:
        rows: list[Comparison] = []
        failed: dict[str, str] = {}
        for mode in self._order.modes:
            self._say(f"comparing, interleaved: {mode}")
            try:
                rows.append(compare(self._subject, mode, self._budget, self._rng, without=dropped))
            except OutOfTime as why:
                failed[mode] = str(why)
            except NoSuchMode as why:
                self._budget.skip()
                failed[mode] = str(why)
            self._done += 1
        return rows, failed

    def _dropping(self) -> list[KernelSaving]:
        """What each kernel saves in a cast without those that were found to slow the model. One
        that was measured before such a kernel was found is measured again: beside a kernel that
        costs much, what a small one costs cannot be seen."""
        found: dict[str, KernelSaving] = {}
        waiting = self.kernels
        while waiting:
            kept: list[list[Hits]] = []
            again: list[list[Hits]] = []
            for served in waiting:
                dropped = [node for node, kernel in found.items() if kernel.slows]
                kernel = found[served[0].node_id] = self._attributed(served, dropped)
                if kernel.slows:
                    again = list(kept)
                elif kernel.saving_us is not None:
                    kept.append(served)
            self._budget.add(len(again))
            self._total += len(again)
            waiting = again
        return list(found.values())

    def _attributed(self, served: list[Hits], dropped: Collection[str]) -> KernelSaving:
        self._say(f"the model without {served[0].node_id}")
        found = attribute(self._subject, served, self._budget, self._rng, without=dropped)
        self._done += 1
        return found

    def _say(self, text: str) -> None:
        self._notice(Progress(done=self._done, total=self._total, text=text))


def _by_node(subject: Subject) -> list[list[Hits]]:
    """What each node serves in one run; the one that should save least comes first, so that where
    time runs out, what may cost most to keep has been looked at."""
    enter = subject.enter(())
    with (
        torch.no_grad(),
        prepared("eager", subject.model, subject.sets, [enter], subject.device) as (side,),
    ):
        hits = run_hits(subject.cast, side)
    subject.cast.disable()
    ordered = sorted(hits, key=lambda h: h.node_id)
    groups = [list(of) for _, of in groupby(ordered, key=lambda h: h.node_id)]
    return sorted(groups, key=_expected)


def _expected(served: list[Hits]) -> float:
    return sum(
        h.hits * (h.timing.eager_us - h.timing.candidate_us) for h in served if h.timing is not None
    )


if __name__ == "__main__":
    ours, _ = channel()
    serve(ours, MeasureOrder, measure)
