"""Intervals for paired timings that are neither independent nor normal."""  # noqa: A005

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelforge_engine.errors import MeasurementFailed

RESAMPLES = 10_000
FEWEST = 8
SPENT = 0.01  # the chance of a false win that all attempts on one variant share
THIN = 1e-3  # below it a bootstrap's tail holds too few resamples to be read
FEW = 30  # samples from which a bootstrap is believed


def allowed(attempt: int) -> float:
    """The chance of a false win that attempt 1, 2, 3, ... may spend: over any number of attempts
    they sum to less than SPENT."""
    return SPENT / (attempt * (attempt + 1))


def fewest(alpha: float) -> int:
    """The samples that any interval at level 1 - alpha needs: fewer could all agree by chance."""
    return max(FEWEST, math.ceil(math.log2(2 / alpha)))


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
    samples = _usable(log_ratios, FEWEST)
    medians = np.median(samples[_block_indexes(samples.size, rng)], axis=1)
    low, high = np.quantile(medians, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(np.median(samples)), float(low), float(high)


def sign_interval(log_ratios: ArrayLike, alpha: float) -> tuple[float, float, float]:
    """The median with the interval of every value that a two-sided sign test at `alpha` keeps:
    exact for any noise without memory.

    Raises:
        MeasurementFailed: fewer samples than the level needs, or one that is not finite.
    """
    samples = np.sort(_usable(log_ratios, fewest(alpha)))
    outside, tail = -1, 0.0
    while (tail := tail + math.comb(samples.size, outside + 1) / 2**samples.size) <= alpha / 2:
        outside += 1
    last = samples.size - 1 - outside
    return float(np.median(samples)), float(samples[outside]), float(samples[last])


def spent_interval(
    log_ratios: ArrayLike, alpha: float, rng: np.random.Generator
) -> tuple[float, float, float]:
    """The median with the interval that a share `alpha` of the allowed error buys.

    With enough samples and a level that a bootstrap can read, that is the bootstrap's. Otherwise
    it is the sign test's, as wide at least as the bootstrap's, since the first takes neighbours for
    strangers and the second cannot see its own tail.

    Raises:
        MeasurementFailed: fewer samples than the level needs, or one that is not finite.
    """
    samples = _usable(log_ratios, fewest(alpha))
    middle, low, high = paired_interval(samples, 1 - alpha, rng)
    if samples.size < FEW or alpha < THIN:
        _, lowest, highest = sign_interval(samples, alpha)
        low, high = min(low, lowest), max(high, highest)
    return middle, low, high


def _usable(log_ratios: ArrayLike, wanted: int) -> NDArray[np.float64]:
    samples = np.asarray(log_ratios, dtype=np.float64)
    if samples.ndim != 1 or samples.size < wanted or not np.isfinite(samples).all():
        why = f"an interval needs {wanted} or more finite samples, not {samples.size}"
        raise MeasurementFailed(what="a paired comparison", why=why)
    return samples


def _block_indexes(n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Resampled positions, shape (RESAMPLES, n), as runs that start anywhere a whole block fits."""
    length = math.ceil(n ** (1 / 3))
    starts = rng.integers(0, n - length + 1, size=(RESAMPLES, math.ceil(n / length)))
    runs = starts[:, :, None] + np.arange(length)
    return runs.reshape(RESAMPLES, -1)[:, :n].astype(np.intp)
