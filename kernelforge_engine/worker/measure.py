"""Whole-model latency with and without a cast, interleaved in one process, and the output drift.

Quartets are ABBA or BAAB by coin; a sample is a run of forward passes long enough to time, after
one that is not timed, since switching a cast registers and removes kernels.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from kernelforge_engine.dispatch.runtime import Cast
from kernelforge_engine.errors import MeasurementFailed
from kernelforge_engine.exchanges import Measurement
from kernelforge_engine.statistics import paired_interval
from kernelforge_engine.worker.ways.ready import Inputs

CONFIDENCE = 0.99
SAMPLE_US = 10_000.0
MOST_CALLS = 200
SEED = 20_240_229
TINY = torch.finfo(torch.float32).tiny  # the scale of an output of zeros


def compare(
    model: Callable[..., Any],
    sets: Sequence[Inputs],
    cast: Cast,
    *,
    quartets: int,
    rng: np.random.Generator,
) -> Measurement:
    """Time the model on all its input sets together, as it is and with `cast`, in microseconds.

    `speedup` is original over patched with its 99 % interval; `hits` and `fallbacks` are of all
    patched runs. The model runs under no_grad, on the same inputs every time: a model that changes
    them measures what it then does.

    Raises:
        MeasurementFailed: fewer than 8 quartets, or outputs that cannot be compared.
    """
    trial = _Trial(lambda: [model(*args, **kwargs) for args, kwargs in sets], cast)
    before = cast.counters()
    with torch.no_grad():
        max_abs, max_relative = drift(trial.output(patched=False), trial.output(patched=True))
        calls = trial.calibrated()
        pairs = [trial.quartet(calls, bool(rng.integers(2))) for _ in range(quartets)]
    ratios = [math.log(original / patched) for original, patched in pairs]
    middle, low, high = (math.exp(v) for v in paired_interval(ratios, CONFIDENCE, rng))
    after = cast.counters()
    return Measurement(
        original_us=median(original for original, _ in pairs),
        patched_us=median(patched for _, patched in pairs),
        speedup=middle,
        low=low,
        high=high,
        max_abs=max_abs,
        max_relative=max_relative,
        hits=after.hits - before.hits,
        fallbacks=_increase(before.fallbacks, after.fallbacks),
    )


class _Trial:
    """A forward pass that can be run with and without a cast."""

    def __init__(self, run: Callable[[], Any], cast: Cast) -> None:
        self._run, self._cast = run, cast

    def output(self, *, patched: bool) -> Any:
        """The output of one run, under the same random state on both sides."""
        self._switch(patched)
        with torch.random.fork_rng(range(torch.cuda.device_count())):
            torch.manual_seed(SEED)
            output = self._run()
            _synchronize()
        self._switch(False)
        return output

    def calibrated(self) -> int:
        """Forward passes that fill a sample."""
        self._run()
        return max(1, min(MOST_CALLS, math.ceil(SAMPLE_US / self._sample_us(1))))

    def quartet(self, calls: int, original_first: bool) -> tuple[float, float]:
        """(original, patched): geometric means of two samples each, in ABBA order."""
        sides: dict[bool, list[float]] = {True: [], False: []}
        for patched in (not original_first, original_first, original_first, not original_first):
            self._switch(patched)
            self._run()
            sides[patched].append(self._sample_us(calls))
        self._switch(False)
        return math.sqrt(math.prod(sides[False])), math.sqrt(math.prod(sides[True]))

    def _switch(self, patched: bool) -> None:
        if patched:
            self._cast.enable()
        else:
            self._cast.disable()

    def _sample_us(self, calls: int) -> float:
        _synchronize()
        start = time.perf_counter_ns()
        for _ in range(calls):
            self._run()
        _synchronize()
        return (time.perf_counter_ns() - start) / 1000.0 / calls


def drift(original: Any, patched: Any) -> tuple[float, float]:
    """The largest difference over all tensors of two output trees: as it is, and over the root mean
    square of the original tensor. Values that are equal, NaN included, do not differ.

    Raises:
        MeasurementFailed: the trees differ in structure, hold no tensor, or one is not finite where
            the other is.
    """
    left, right = tensors_of(original), tensors_of(patched)
    facts = [[(t.shape, t.dtype) for t in side] for side in (left, right)]
    if not left or facts[0] != facts[1]:
        why = "the two outputs do not hold the same tensors" if left else "they hold no tensor"
        raise MeasurementFailed(what="the outputs of the model", why=why)
    differences = [_difference(a, b) for a, b in zip(left, right, strict=True)]
    largest, relative = (max(side) for side in zip(*differences, strict=True))
    if not math.isfinite(largest):
        why = "with the cast they are not finite where the original is, or the reverse"
        raise MeasurementFailed(what="the outputs of the model", why=why)
    return largest, relative


def tensors_of(tree: Any) -> list[torch.Tensor]:
    """Every tensor of an output tree, looking into dataclasses too."""
    found: list[torch.Tensor] = []
    for leaf in pytree.tree_leaves(tree):
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif is_dataclass(leaf) and not isinstance(leaf, type):
            found += tensors_of([getattr(leaf, f.name) for f in fields(leaf)])
    return found


def _difference(original: torch.Tensor, patched: torch.Tensor) -> tuple[float, float]:
    if not original.numel():
        return 0.0, 0.0
    wide = torch.complex128 if original.is_complex() else torch.float64
    a, b = original.to(wide), patched.to(wide)
    same = (a == b) | (a.isnan() & b.isnan())
    apart = torch.where(same, torch.zeros_like(a), a - b).abs()
    largest = float(apart.nan_to_num(nan=math.inf, posinf=math.inf).max())
    scale = float(a.abs().nan_to_num(0.0, 0.0, 0.0).square().mean().sqrt())
    return largest, largest / max(scale, TINY)


def _increase(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for operator, reasons in after.items():
        for reason, count in reasons.items():
            if more := count - before.get(operator, {}).get(reason, 0):
                found.setdefault(operator, {})[reason] = more
    return found


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
