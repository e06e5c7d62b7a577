"""What a forged time can gain is bounded by the Judge's own clock."""

from kernelforge_engine.worker.wallclock import FEWEST, WallClock

SAMPLE_US = 40_000.0


def verdicts(waited_us, us, *, restored=0, times=FEWEST):
    clock = WallClock()
    clock.restart(restored, 4)
    return [clock.disbelieves(waited_us, us, 8) for _ in range(times)]


def test_an_honest_sample_is_believed_however_often():
    assert not any(verdicts(2 * SAMPLE_US, SAMPLE_US / 8, times=100))


def test_a_time_that_is_far_too_short_is_not_believed():
    assert verdicts(2 * SAMPLE_US, SAMPLE_US / 80)[-1]


def test_what_is_put_back_between_calls_explains_waiting():
    assert not any(verdicts(2 * SAMPLE_US, SAMPLE_US / 80, restored=10_000_000))


def test_one_sample_that_explains_itself_is_enough_on_a_busy_machine():
    clock = WallClock()
    waits = [*[1e6] * FEWEST, 2 * SAMPLE_US, *[1e6] * FEWEST]
    assert not clock.disbelieves(waits[FEWEST], SAMPLE_US / 8, 8)
    assert not any(clock.disbelieves(each, SAMPLE_US / 8, 8) for each in waits)


def test_fewer_samples_are_no_evidence():
    assert not any(verdicts(1e9, 1.0, times=FEWEST - 1))
