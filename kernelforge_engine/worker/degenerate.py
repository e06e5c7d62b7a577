"""T5: whether the draws of a variant tell a kernel from one value that is written everywhere.

With r the fp64 reference of an output over all draws, c its mean and de eager's error, an output is
degenerate where RMS(r - c) is no more than 100 times RMS(de): a constant would then be as good as a
hundredth of eager's error allows, and so nothing was shown by agreeing with it. For a result of
eager's that is exact, it is degenerate where no element differs from another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

import torch

from kernelforge_engine.worker.reference import Expectation

TRIVIAL = 1e-2


@dataclass(kw_only=True)
class _Moments:
    """Sums over the finite elements of one output, on its device; nothing waits for them."""

    count: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor
    error: torch.Tensor


@dataclass
class Spread:
    """What the references of all draws so far have in common."""

    _outputs: dict[int, _Moments] = field(default_factory=dict)

    def add(self, expectation: Expectation) -> None:
        """One more draw."""
        pairs = zip(expectation.reference, expectation.eager, strict=True)
        for index, (reference, eager) in enumerate(pairs):
            r, e = reference.double(), eager.double()
            finite = r.isfinite() & e.isfinite()
            r, de = torch.where(finite, r, 0.0), torch.where(finite, e - r, 0.0)
            found = [finite.sum().double(), r.sum(), r.square().sum(), de.square().sum()]
            known = self._outputs.get(index)
            if known is not None:
                before = (known.count, known.first, known.second, known.error)
                found = [a + b for a, b in zip(before, found, strict=True)]
            count, first, second, error = found
            self._outputs[index] = _Moments(count=count, first=first, second=second, error=error)

    def degenerate(self) -> Sequence[int]:
        """The outputs that one value would do for."""
        return [i for i, moments in self._outputs.items() if _is_constant(moments)]


def _is_constant(moments: _Moments) -> bool:
    count = max(1.0, float(moments.count))
    mean = float(moments.first) / count
    variance = max(0.0, float(moments.second) / count - mean * mean)
    # What is left of a difference of such sums is not known better than this.
    variance -= 1e-12 * float(moments.second) / count
    if variance <= 0:
        return True
    return sqrt(float(moments.error) / count) > TRIVIAL * sqrt(variance)
