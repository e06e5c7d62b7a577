"""One comparison of two sides: interleaved quartets with controls among them, look by look."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kernelforge_engine.records import Timing
from kernelforge_engine.statistics import FEWEST, fewest
from kernelforge_engine.worker.decision import (
    Protocol,
    Quartet,
    Sampled,
    clearly_slower,
    decided,
    far_off,
    level,
)

GLANCE = 10  # quartets after which a candidate may be found slower
CONTROL_EVERY = 3  # quartets between two controls
FEWEST_CONTROLS = 3
LOOK_SECONDS = 5.0  # a busy machine, or a slow call, gets fewer quartets and a wider interval

Side = Callable[[], float]


def undisturbed() -> tuple[int, int]:
    """The counters of a side that other work cannot disturb, such as a device of its own."""
    return 0, 0


def unclocked() -> int:
    """The clock of a device that cannot be asked for it."""
    return 0


@dataclass(kw_only=True)
class Trial:
    """Eager against another side; each gives the microseconds per call of one sample.

    `coin` orders the samples of a quartet, ABBA or BAAB; `alpha` is the chance of a false win that
    this comparison may spend; `disturbances` counts switches and stolen ticks since some past,
    and `core_mhz` is the device's clock, 0 where that is unknown.
    """

    eager: Side
    other: Side
    protocol: Protocol
    alpha: float
    coin: random.Random
    disturbances: Callable[[], tuple[int, int]] = undisturbed
    core_mhz: Callable[[], int] = unclocked
    _quartets: list[Quartet] = field(default_factory=list)
    _controls: list[Quartet] = field(default_factory=list)
    _start: float = field(default_factory=time.monotonic)

    def run(self) -> Timing:
        """Measure until something is decided, or until every look was taken."""
        rng = np.random.default_rng(self.coin.getrandbits(64))
        self._measure(GLANCE, FEWEST, LOOK_SECONDS)
        slower = clearly_slower(self._quartets, self.protocol, rng)
        if slower:
            return slower
        needed = fewest(level(self.protocol, self.alpha))
        self._measure(needed, needed, LOOK_SECONDS)
        timing, _ = self._decided(rng)
        if far_off(timing):
            return timing
        for number in range(1, self.protocol.looks):
            self._measure(number * self.protocol.quartets, needed, number * LOOK_SECONDS)
            self._measure_controls(FEWEST, number * LOOK_SECONDS)
            timing, settled = self._decided(rng)
            if settled:
                break
        return timing

    def _decided(self, rng: np.random.Generator) -> tuple[Timing, bool]:
        return decided(self._quartets, self._controls, self.protocol, self.alpha, rng)

    def _measure(self, wanted: int, needed: int, seconds: float) -> None:
        """Quartets until there are as many as wanted, or as needed when so many seconds are over
        since the start; with a few controls among them."""
        deadline = self._start + seconds
        while len(self._quartets) < wanted:
            if time.monotonic() > deadline and len(self._quartets) >= needed:
                break
            self._quartets.append(self._quartet(self.other))
            if len(self._quartets) % CONTROL_EVERY == 0:
                self._controls.append(self._quartet(self.eager))
        self._measure_controls(FEWEST_CONTROLS, math.inf)

    def _measure_controls(self, wanted: int, seconds: float) -> None:
        """Controls until there are as many as wanted, or so many seconds are over since the
        start."""
        deadline = self._start + seconds
        while len(self._controls) < wanted and time.monotonic() <= deadline:
            self._controls.append(self._quartet(self.eager))

    def _quartet(self, other: Side) -> Quartet:
        order = "EOOE" if self.coin.random() < 0.5 else "OEEO"
        taken = [(side, self._sampled(self.eager if side == "E" else other)) for side in order]
        first, second = (s for side, s in taken if side == "E")
        third, fourth = (s for side, s in taken if side == "O")
        return Quartet(eager=(first, second), other=(third, fourth))

    def _sampled(self, side: Side) -> Sampled:
        switches, stolen = self.disturbances()
        us = side()
        after = self.disturbances()
        return Sampled(
            us=us,
            switches=after[0] - switches,
            stolen=after[1] - stolen,
            mhz=self.core_mhz(),
        )
