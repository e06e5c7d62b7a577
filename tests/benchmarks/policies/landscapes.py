"""What an author's proposals come to, made up: landscapes for searches to be tried on.

A state is a candidate; its height is ln(time / eager's time), so that 0 is as fast as eager and
lower is better. `first` is what an author writes with nothing to start from, `revised` what becomes
of a candidate by one more idea. None is a proposal that failed.

Only `published` and the recorded ones are fitted to anything; what the others are for stands with
them, and their numbers are assumptions.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from random import Random
from statistics import median, stdev
from typing import Any, Protocol

FAILS = 0.25  # of all proposals; repairs are part of a proposal
WORST = 4.0  # nobody keeps what takes e ** 4 times as long as eager


@dataclass(frozen=True)
class State:
    """A candidate: its height, and what its descendants inherit."""

    height: float
    floor: float = 0.0
    step: int = 0
    choices: tuple[str, ...] = ()


class Landscape(Protocol):
    """Where one search takes place."""

    def first(self, random: Random) -> State | None: ...
    def revised(self, state: State, random: Random) -> State | None: ...


@dataclass(frozen=True)
class Descent:
    """Every idea moves a candidate to or from the floor of its approach by a factor: ln(factor) is
    normal. A first version begins `distance` above it. With `rewrite` an idea is another approach.

    Attributes:
        floors: mean and deviation of the height of an approach's floor.
        distance: mean and deviation of what a first version is above it.
        idea: mean and deviation of ln(factor).
    """

    floors: tuple[float, float]
    distance: tuple[float, float]
    idea: tuple[float, float]
    rewrite: float = 0.0

    def first(self, random: Random) -> State | None:
        if random.random() < FAILS:
            return None
        floor = random.gauss(*self.floors)
        return State(floor + abs(random.gauss(*self.distance)), floor)

    def revised(self, state: State, random: Random) -> State | None:
        if random.random() < self.rewrite:
            return self.first(random)
        if random.random() < FAILS:
            return None
        factor = exp(random.gauss(*self.idea))
        height = state.floor + (state.height - state.floor) * factor
        return State(min(height, WORST), state.floor)


@dataclass(frozen=True)
class Valley:
    """A rewrite of `long` steps, each of which makes the candidate slower by `up`, but the last,
    which makes it faster by `down`. Half of the ideas are of another kind and change it by chance,
    by `noise`, above what is possible without the rewrite and `down` lower with it."""

    long: int = 3
    up: float = 0.25
    down: float = 1.5
    noise: float = 0.15

    def first(self, random: Random) -> State | None:
        return None if random.random() < FAILS else State(random.gauss(0.5, 0.3))

    def revised(self, state: State, random: Random) -> State | None:
        if random.random() < FAILS:
            return None
        step, change = state.step, random.gauss(0.0, self.noise)
        if step < self.long and random.random() < 0.5:
            step += 1
            change += self.up if step < self.long else -self.down
        floor = -self.down if step == self.long else 0.0
        return State(max(floor, state.height + change), step=step)


@dataclass(frozen=True)
class Lottery:
    """Every proposal is a new draw, whatever it revises."""

    mean: float = 0.8
    deviation: float = 0.6

    def first(self, random: Random) -> State | None:
        failed = random.random() < FAILS
        return None if failed else State(random.gauss(self.mean, self.deviation))

    def revised(self, _state: State, random: Random) -> State | None:
        return self.first(random)


@dataclass(frozen=True)
class Recorded:
    """Kernels that were written, judged and timed: an idea changes one choice of a source."""

    axes: tuple[tuple[str, ...], ...]
    heights: dict[tuple[str, ...], float | None]

    def first(self, random: Random) -> State | None:
        return self._state(tuple(random.choice(axis) for axis in self.axes))

    def revised(self, state: State, random: Random) -> State | None:
        place = random.randrange(len(self.axes))
        others = [c for c in self.axes[place] if c != state.choices[place]]
        changed = (*state.choices[:place], random.choice(others), *state.choices[place + 1 :])
        return self._state(changed)

    def _state(self, choices: tuple[str, ...]) -> State | None:
        height = self.heights[choices]
        return None if height is None else State(height, choices=choices)


# Best speed-up over eager of the published arms, in the data of the system's public repository: a
# first version, then after 5, 10, 20 and 50 iterations; 0 where only "faster" is on record.
PUBLISHED: dict[str, tuple[float, ...]] = {
    "Gemma embedding": (0.775, 1.062, 0.0, 0.0, 0.0),
    "Gemma gelu": (0.854, 1.320, 0.0, 0.0, 0.0),
    "Gemma linear": (0.024, 0.244, 0.0, 0.288, 0.0),
    "Gemma softmax": (0.514, 0.662, 0.0, 0.801, 0.0),
    "Qwen grouped_mm": (0.120, 0.145, 0.145, 0.186, 0.207),
    "Qwen linear": (0.095, 0.223, 0.223, 0.368, 0.378),
    "Qwen int4 linear": (0.684, 0.850, 0.863, 0.875, 0.0),
    "Qwen int4 sigmoid": (0.990, 0.990, 0.0, 0.0, 0.0),
    "Qwen int4 silu": (0.964, 0.964, 0.994, 0.999, 0.0),
}
ITERATIONS = (0, 5, 10, 20, 50)


# The times of the first five siblings in three published trees, in ms.
SIBLINGS = (
    (0.00632, 0.00618, 0.00612, 0.02308, 0.01048),
    (0.0843, 0.1692, 0.1318, 0.3009, 0.1409),
    (0.01643, 0.01642, 0.01851, 0.01851, 0.01227),
)


def published_spread() -> float:
    """The median deviation of ln(time) among siblings."""
    return median(stdev(log(ms) for ms in siblings) for siblings in SIBLINGS)


def published_growth() -> dict[int, float]:
    """The median of ln(best after so many iterations / first version)."""
    growth = {}
    for place, iterations in enumerate(ITERATIONS):
        growth[iterations] = median(log(r[place] / r[0]) for r in PUBLISHED.values() if r[place])
    return growth


def recorded() -> dict[str, Landscape]:
    """What record.py wrote."""
    text = Path(__file__).with_name("recorded.json").read_text("utf-8")
    operators: dict[str, Any] = json.loads(text)["operators"]
    return {f"recorded {name}": _recorded(found) for name, found in operators.items()}


def _recorded(found: dict[str, Any]) -> Recorded:
    rows = {tuple(row[:-1]): row[-1] for row in found["rows"]}
    heights = {k: None if us is None else log(us / found["eager_us"]) for k, us in rows.items()}
    return Recorded(tuple(tuple(names) for names in found["axes"].values()), heights)


Family = Callable[[Random], Landscape]


def published(random: Random) -> Landscape:
    """One operator of the published runs. Fitted: the spread of siblings, how the best grows under
    the published rule, how far first versions are from eager, and how many operators end faster
    (14 of 33). Assumed: that approaches to one operator differ by 0.3, which no run tells."""
    return Descent((random.gauss(-0.6, 1.0), 0.3), (1.5, 0.5), (0.1, 0.3))


def families() -> dict[str, Family]:
    """The landscapes of the study; every run is on one of a family."""
    assumed: dict[str, Landscape] = {
        # Small steps on one hill; going deeper is all there is to do.
        "hill": Descent((-1.5, 0.0), (2.0, 0.3), (-0.05, 0.2)),
        # Approaches differ more than their versions; a poor start may end best.
        "approaches": Descent((-0.5, 0.9), (1.2, 0.5), (0.0, 0.35), 0.1),
        # A library that nothing beats.
        "hopeless": Descent((1.0, 0.2), (1.5, 0.5), (0.0, 0.4)),
        # What has to get slower before it gets faster.
        "valley": Valley(),
        # Parents do not matter.
        "lottery": Lottery(),
        **recorded(),
    }
    return {"published": published} | {name: _same(land) for name, land in assumed.items()}


def _same(land: Landscape) -> Family:
    return lambda _random: land
