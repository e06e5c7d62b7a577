"""False wins and power of a benchmark, as JSON: eager against itself and against a slower eager.

Each null candidate is eager's own operator on fresh memory, as many sets of it as a benchmark has,
timed against eager through the decision that every candidate meets: controls, looks, the error an
attempt may spend, and for a win a second comparison on other memory.
Each true win is the same against an eager that spins for a calibrated 5 or 10 percent longer.
Designs in wide use stand beside it, on samples of the same length taken in the same run. Eager runs
on one thread, so that a machine of few processors can do other work meanwhile.

    python tests/benchmarks/null_test.py [CANDIDATES] [WINS]
"""

import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, median

import torch

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.guard import describe
from kernelforge_engine.records import Outcome, Timing
from kernelforge_engine.statistics import allowed
from kernelforge_engine.worker.decision import PROTOCOLS, confirmed
from kernelforge_engine.worker.eager import EagerSide
from kernelforge_engine.worker.surroundings import disturbances
from kernelforge_engine.worker.timing import rotating
from kernelforge_engine.worker.trial import Trial

CANDIDATES, WINS = 12, 4
SEED, SHAPE = 20_240_229, (64, 1536)
TRUE = (1.05, 1.1, 1.2)
NAIVE = 10  # samples of either side
CLAIMED = 1.01  # the ratio from which a naive design tells of a win
DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
PROTOCOL = PROTOCOLS[DEVICE.type]

Side = Callable[[], float]


def main() -> None:
    given = [int(text) for text in sys.argv[1:]]
    candidates, wins = given + [CANDIDATES, WINS][len(given) :]
    torch.set_num_threads(1)
    coin = random.Random(SEED)
    start = time.monotonic()
    nulls = [timed(1.0, coin) for _ in range(candidates)]
    said(
        candidates=candidates,
        false_faster=sum(t.outcome == Outcome.FASTER for t in nulls),
        outcomes=counted(nulls),
        seconds_each=round((time.monotonic() - start) / max(1, candidates), 2),
    )
    field = Field()
    naive = {name: [design(field) for _ in range(candidates)] for name, design in NAIVES.items()}
    said(candidates=candidates, naive_false_faster={n: sum(claims) for n, claims in naive.items()})
    for true in TRUE:
        found = [timed(true, coin) for _ in range(wins)]
        said(
            true_speedup=true,
            wins=wins,
            power=share([t.outcome == Outcome.FASTER for t in found]),
            speedup=round(median(t.speedup for t in found), 3),
            naive_power={
                name: share([design(field, true) for _ in range(wins)])
                for name, design in NAIVES.items()
            },
            missed=sorted({str(t.evidence["why"]) for t in found if t.outcome != Outcome.FASTER}),
        )


def said(**figures: object) -> None:
    """Print one line of figures; the larger counts take long."""
    print(json.dumps({"benchmark": "null_test", "device": DEVICE.type, **figures}), flush=True)


def timed(true: float, coin: random.Random) -> Timing:
    timing = comparison(Field(), true, coin)
    if timing.outcome != Outcome.FASTER:
        return timing
    return confirmed(timing, comparison(Field(), true, coin))


def comparison(field: "Field", true: float, coin: random.Random) -> Timing:
    return Trial(
        eager=field.slower(true),
        other=field.side,
        protocol=PROTOCOL,
        alpha=allowed(1),
        coin=coin,
        disturbances=partial(disturbances, 0) if DEVICE.type == "cpu" else lambda: (0, 0),
    ).run()


@dataclass
class Field:
    """The two sides: the same operator on memory of its own."""

    calls: int = 0
    us: float = 0.0
    sides: list[EagerSide] = field(default_factory=list)

    def __post_init__(self) -> None:
        torch.manual_seed(SEED)
        x = torch.randn(*SHAPE, device=DEVICE)
        call: Call = describe(torch.ops.aten.gelu.default, (x,), {}, torch.ops.aten.gelu(x))
        sets = rotating(call.backend, DEVICE, 2 * x.nbytes)
        trial = EagerSide(call, [x], sets, sets)
        self.us = median(trial.sample() for _ in range(NAIVE))
        self.calls = sets * max(1, round(PROTOCOL.sample_us / self.us / sets))
        self.sides = [EagerSide(call, [x], sets, self.calls) for _ in range(2)]

    def side(self) -> float:
        return self.sides[1].sample()

    def slower(self, ratio: float) -> Side:
        """Eager as it is, or with so much more time for each call."""

        def sample() -> float:
            us = self.sides[0].sample()
            return us if ratio == 1.0 else us + spun((ratio - 1) * us * self.calls) / self.calls

        return sample


def spun(us: float) -> float:
    """Spin for so long; how long it took."""
    start = time.perf_counter_ns()
    while (taken := (time.perf_counter_ns() - start) / 1000) < us:
        pass
    return taken


def taken(side: Side) -> list[float]:
    return [side() for _ in range(NAIVE)]


def best_of_ten(field: Field, true: float = 1.0) -> bool:
    return min(taken(field.slower(true))) / min(taken(field.side)) > CLAIMED


def mean_of_ten(field: Field, true: float = 1.0) -> bool:
    return fmean(taken(field.slower(true))) / fmean(taken(field.side)) > CLAIMED


def median_one_after_the_other(field: Field, true: float = 1.0) -> bool:
    return median(taken(field.slower(true))) / median(taken(field.side)) > CLAIMED


def best_of_five_tries(field: Field, true: float = 1.0) -> bool:
    """An author who measures five times and reports the best."""
    return any(mean_of_ten(field, true) for _ in range(5))


def counted(timings: list[Timing]) -> dict[str, int]:
    outcomes = [str(t.outcome) for t in timings]
    return {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}


def share(claims: list[bool]) -> float:
    return round(fmean(claims), 3)


NAIVES = {
    design.__name__: design
    for design in (best_of_ten, mean_of_ten, median_one_after_the_other, best_of_five_tries)
}

if __name__ == "__main__":
    main()
