"""How much a candidate is judged: which families of draws, how many of each, how many repeats.

`quick` is feedback within a moment; `full` what makes a node; `promotion` what a claim rests on.
"""

from dataclasses import dataclass

from kernelforge_engine.records import Tier


@dataclass(frozen=True, kw_only=True)
class Policy:
    """`families` None means all that mean something for the operator; `draws` are made of each.

    `repeats` more runs of the captured example and of a fresh draw must leave the very same bits.
    The draws must be `telling`: no one value does for an output on all of them.
    """

    families: tuple[str, ...] | None = None
    draws: int = 1
    repeats: int = 0
    telling: bool = False


POLICIES: dict[Tier, Policy] = {
    "quick": Policy(families=("nudged", "resampled", "normal", "special")),
    "full": Policy(),
    "promotion": Policy(draws=3, repeats=20, telling=True),
}
