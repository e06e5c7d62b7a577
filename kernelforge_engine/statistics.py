"""Intervals for paired timings that are neither independent nor normal."""  # noqa: A005

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelforge_engine.errors import MeasurementFailed

RESAMPLES = 10_000
FEWEST = 8


def paired_interval(
    log_ratios: ArrayLike, confidence: float, rng: np.random.Generator
) -> tuple[float, float, float]:
    """The median of paired log ratios with its percentile interval: (median, low, high).

    Neighbouring samples share the machine's mood (clocks, caches, other work), so whole runs of
    them are drawn: the moving-block bootstrap of Künsch (The Annals of Statistics 17, 1989), with
    blocks of ceil(n^(1/3)) samples, the rate Hall, Horowitz and Jing (Biometrika 82, 1995) give.

    Args:
        log_ratios: shape (n,), in the order they were measured.
        confidence: the coverage of the interval, such as 0.99.
        rng: where resamples are drawn from.

    Raises:
        MeasurementFailed: fewer than 8 samples, or one that is not finite.
    """
    samples = np.asarray(log_ratios, dtype=np.float64)
    if samples.ndim != 1 or samples.size < FEWEST or not np.isfinite(samples).all():
        why = f"an interval needs {FEWEST} or more finite samples, not {samples.size}"
        raise MeasurementFailed(what="a paired comparison", why=why)
    medians = np.median(samples[_block_indexes(samples.size, rng)], axis=1)
    low, high = np.quantile(medians, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(np.median(samples)), float(low), float(high)


def _block_indexes(n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Resampled positions, shape (RESAMPLES, n), as runs that start anywhere a whole block fits."""
    length = math.ceil(n ** (1 / 3))
    starts = rng.integers(0, n - length + 1, size=(RESAMPLES, math.ceil(n / length)))
    runs = starts[:, :, None] + np.arange(length)
    return runs.reshape(RESAMPLES, -1)[:, :n].astype(np.intp)
