"""What a comparison concludes on simulated noise, and how the error it may make is spent."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from kernelforge_engine.errors import MeasurementFailed
from kernelforge_engine.records import Outcome
from kernelforge_engine.statistics import (
    SPENT,
    allowed,
    fewest,
    paired_interval,
    sign_interval,
    spent_interval,
)
from kernelforge_engine.worker.decision import (
    PROTOCOLS,
    Quartet,
    Sampled,
    confirmed,
    decided,
    far_off,
)
from kernelforge_engine.worker.trial import GLANCE, Trial

CPU, CUDA = PROTOCOLS["cpu"], PROTOCOLS["cuda"]
TRIALS = 25


class Machine:
    """Two sides that take `us` and `us / ratio`, on a machine whose noise is `mood(rng)` per
    sample, as a factor; the mood goes on from sample to sample."""

    def __init__(self, mood, ratio, seed):
        self._mood, self._ratio = mood(np.random.default_rng(seed)), ratio

    def eager(self):
        return 100.0 * next(self._mood)

    def other(self):
        return 100.0 / self._ratio * next(self._mood)


def calm(rng):
    while True:
        yield math.exp(0.01 * rng.standard_normal())


def heavy_tails(rng):
    while True:
        spike = rng.uniform(1, 5) if rng.random() < 0.1 else 1.0
        yield spike * math.exp(0.02 * rng.standard_t(2))


def drift(rng):
    state = 0.0
    while True:
        state += 0.02 * rng.standard_normal()
        yield math.exp(state + 0.02 * rng.standard_normal())


def memory(rng):
    state = 0.0
    while True:
        state = 0.9 * state + 0.03 * rng.standard_normal()
        yield math.exp(state + 0.02 * rng.standard_normal())


def outcomes(mood, ratio, protocol):
    found = []
    for seed in range(TRIALS):
        machine = Machine(mood, ratio, seed)
        trial = Trial(
            eager=machine.eager,
            other=machine.other,
            protocol=protocol,
            alpha=allowed(1),
            coin=random.Random(seed),
        )
        found.append(trial.run())
    return found


@pytest.mark.parametrize("mood", [calm, heavy_tails, drift, memory])
@pytest.mark.parametrize("protocol", [CPU, CUDA], ids=["cpu", "cuda"])
def test_equal_sides_are_never_found_faster(mood, protocol):
    assert Outcome.FASTER not in {t.outcome for t in outcomes(mood, 1.0, protocol)}


@pytest.mark.parametrize("mood", [heavy_tails, drift, memory])
def test_a_fifth_is_found_on_a_noisy_machine(mood):
    found = [t.outcome for t in outcomes(mood, 1.2, CPU)]
    assert found.count(Outcome.FASTER) >= 0.9 * TRIALS


def test_a_twentieth_is_found_on_a_calm_device():
    found = [t.outcome for t in outcomes(calm, 1.05, CUDA)]
    assert found.count(Outcome.FASTER) >= 0.95 * TRIALS


def test_a_candidate_that_is_clearly_slower_costs_a_glance_only():
    for timing in outcomes(memory, 0.5, CPU):
        assert timing.outcome == Outcome.SLOWER
        assert timing.evidence["quartets"] == GLANCE


def test_equal_sides_on_a_calm_machine_cost_one_look():
    for timing in outcomes(calm, 1.0, CPU):
        assert timing.evidence["quartets"] == CPU.quartets
        assert "as long as eager" in timing.evidence["why"]


def quartets(ratios, *, switches=0):
    """Quartets with these ratios of eager over the other."""
    return [
        Quartet(
            eager=(Sampled(us=100.0 * r), Sampled(us=100.0 * r)),
            other=(Sampled(us=100.0, switches=switches), Sampled(us=100.0)),
        )
        for r in ratios
    ]


def noisy(middle, count, seed=0):
    return middle * np.exp(0.01 * np.random.default_rng(seed).standard_normal(count))


def decision(pairs, controls):
    timing, _ = decided(pairs, controls, CPU, allowed(1), np.random.default_rng(0))
    return timing


def test_no_win_is_believed_on_a_machine_where_eager_beats_itself():
    fit = decision(quartets(noisy(1.5, 30)), quartets(noisy(1.0, 10)))
    assert fit.outcome == Outcome.FASTER
    unfit = decision(quartets(noisy(1.5, 30)), quartets(noisy(1.2, 10)))
    assert unfit.outcome == Outcome.INCONCLUSIVE
    assert "unfit: eager against itself" in unfit.evidence["why"]
    far = decision(quartets(noisy(4.0, 30)), quartets(noisy(1.2, 10)))
    assert far.outcome == Outcome.FASTER


def test_a_win_must_clear_what_the_control_scatters():
    rng = np.random.default_rng(0)
    wide = quartets(np.exp(0.3 * rng.standard_normal(10)))
    found = decision(quartets(noisy(1.1, 30)), wide)
    assert found.outcome == Outcome.INCONCLUSIVE
    assert found.evidence["margin"] > 0.1


def test_quartets_that_other_work_interrupted_are_dropped_on_both_sides():
    controls, calm_ones = quartets(noisy(1.0, 10)), quartets(noisy(1.5, 24))
    few = decision(calm_ones + quartets(noisy(9.0, 6), switches=3), controls)
    assert few.evidence["dropped"] == 6
    assert few.high < 2
    many = decision(calm_ones + quartets(noisy(1.5, 40), switches=3), controls)
    assert (many.evidence["dropped"], many.outcome) == (0, Outcome.FASTER)
    shaken = quartets(np.exp(0.3 * np.random.default_rng(0).standard_normal(10)), switches=3)
    wild = decision(calm_ones + quartets(noisy(1.1, 40), switches=9), shaken)
    assert wild.outcome == Outcome.INCONCLUSIVE


def test_the_repetition_of_a_win_is_what_is_reported():
    lucky = decision(quartets(noisy(1.5, 30)), quartets(noisy(1.0, 10)))
    again = decision(quartets(noisy(1.49, 30, 1)), quartets(noisy(1.0, 10)))
    found = confirmed(lucky, again)
    assert (found.outcome, found.speedup) == (Outcome.FASTER, again.speedup)
    assert found.evidence["first"]["speedup"] == lucky.speedup
    same = decision(quartets(noisy(1.0, 30)), quartets(noisy(1.0, 10)))
    assert confirmed(lucky, same).outcome == Outcome.INCONCLUSIVE
    assert "did not find it faster" in confirmed(lucky, same).evidence["why"]


def test_two_wins_that_exclude_each_other_are_reported_as_wide_as_both():
    first = decision(quartets(noisy(2.0, 30)), quartets(noisy(1.0, 10)))
    found = confirmed(first, replace(first, low=1.3, high=1.4, speedup=1.35))
    assert (found.outcome, found.low, found.high) == (Outcome.FASTER, 1.3, first.high)


def test_all_attempts_together_spend_no_more_than_one_could():
    assert sum(allowed(j) for j in range(1, 100_000)) < SPENT
    ratios = np.random.default_rng(0).standard_normal(60)
    widths = []
    for attempt in (1, 10, 100):
        _, low, high = spent_interval(ratios, allowed(attempt), np.random.default_rng(0))
        widths.append(high - low)
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_an_interval_needs_more_samples_the_less_error_it_may_make():
    ratios = np.zeros(20)
    with pytest.raises(MeasurementFailed, match=f"needs {fewest(1e-9)} or more"):
        spent_interval(ratios, 1e-9, np.random.default_rng(0))
    assert spent_interval(np.zeros(fewest(1e-9)), 1e-9, np.random.default_rng(0)) == (0, 0, 0)


@pytest.mark.parametrize("count", [12, 30, 61])
def test_the_interval_of_the_sign_test_covers_under_any_noise_without_memory(count):
    rng = np.random.default_rng(count)
    missed = 0
    for _ in range(2000):
        _, low, high = sign_interval(rng.standard_cauchy(count), 0.05)
        missed += not low <= 0 <= high
    assert missed <= 0.05 * 2000 + 3 * math.sqrt(2000 * 0.05 * 0.95)


def test_the_interval_of_the_bootstrap_covers_noise_with_a_little_memory():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(100):
        noise = rng.standard_normal(61)
        samples = noise[1:] + 0.3 * noise[:-1]
        _, low, high = paired_interval(samples, 0.95, rng)
        missed += not low <= 0 <= high
    assert missed <= 14


def test_no_win_is_believed_where_the_two_sides_ran_at_different_clocks():
    def at(samples, mhz):
        return tuple(replace(sample, mhz=mhz) for sample in samples)

    pairs = [
        Quartet(eager=at(q.eager, 1900), other=at(q.other, 1980)) for q in quartets(noisy(1.5, 30))
    ]
    found = decision(pairs, quartets(noisy(1.0, 10)))
    assert found.outcome == Outcome.INCONCLUSIVE
    assert found.evidence["core_mhz"] == {"eager": 1900, "candidate": 1980}
    assert "different clocks" in found.evidence["why"]


def test_a_win_that_is_far_off_costs_the_fewest_quartets():
    for timing in outcomes(calm, 2.0, CUDA):
        assert timing.outcome == Outcome.FASTER
        assert timing.evidence["quartets"] == fewest(allowed(1) / CUDA.looks)


def test_a_large_difference_that_is_not_known_closely_is_measured_further():
    calm_ones = quartets(noisy(1.0, 10))
    assert far_off(decision(quartets(noisy(3.0, 15)), calm_ones))
    wide = np.exp(0.2 * np.random.default_rng(0).standard_normal(15))
    assert not far_off(decision(quartets(3.0 * wide), calm_ones))
