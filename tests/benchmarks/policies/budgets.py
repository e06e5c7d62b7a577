"""Ways to spend the proposals of a whole model, on made-up models."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from random import Random

from policies.landscapes import Descent, Landscape
from policies.simulate import Search, Target

from kernelforge_engine.search.budget import Budget, Stake, next_stake
from kernelforge_engine.search.policy import DEFAULT, POLICIES

CARDS = 8
HARD = 0.4  # of the cards are operators of libraries, whose eager is near its floor

Spend = Callable[[list[Target], int], None]


def model(random: Random) -> list[Target]:
    """Cards whose shares fall off as those of captured models do, each with a search."""
    weights = [exp(-0.6 * rank) for rank in range(CARDS)]
    random.shuffle(weights)
    targets = []
    for number, weight in enumerate(weights):
        headroom, land = _card(random)
        stake = Stake(id=str(number), share=weight / sum(weights), headroom=headroom)
        search = Search(land, POLICIES[DEFAULT], random.randrange(10**6))
        targets.append(Target(stake, search))
    return targets


def _card(random: Random) -> tuple[float, Landscape]:
    """The head-room that a capture estimates, and where kernels really get: between a library that
    nothing beats and, for the others, a part of that head-room."""
    if random.random() < HARD:
        return random.uniform(1.0, 2.0), Descent((0.7, 0.3), (1.5, 0.5), (0.0, 0.4))
    reach = abs(random.gauss(0.9, 0.6))
    return exp(reach + abs(random.gauss(0.0, 0.4))), Descent((-reach, 0.2), (1.6, 0.5), (0.0, 0.35))


def equally(targets: list[Target], total: int) -> None:
    """As the published arms: the same number for every card."""
    for number in range(total):
        targets[number % len(targets)].step()


def by_gain(targets: list[Target], total: int) -> None:
    """In proportion to share x head-room, fixed before the first."""
    most = [t.stake.most for t in targets]
    given = [round(total * m / sum(most)) for m in most]
    for target, proposals in zip(targets, given, strict=True):
        for _ in range(proposals):
            target.step()


def replanned(targets: list[Target], total: int) -> None:
    """As the product plans: after every result, where the next is worth most. What early stops
    leave over is not spent."""
    by_id = {t.stake.id: t for t in targets}
    budget = Budget(total=total)
    for spent in range(total):
        chosen = next_stake((t.stake for t in by_id.values()), budget, spent)
        if chosen is None:
            return
        by_id[chosen.id].step()


BUDGETS: dict[str, Spend] = {"replanned": replanned, "equally": equally, "by_gain": by_gain}


@dataclass(frozen=True, kw_only=True)
class Spent:
    """The part of a model's time that was saved, and the proposals that it took."""

    saved: float
    proposals: int


def model_saving(spend: Spend, total: int, random: Random) -> Spent:
    """What a way to spend a budget comes to on one model."""
    targets = model(random)
    spend(targets, total)
    proposals = sum(len(t.stake.results) for t in targets)
    return Spent(saved=sum(t.saved for t in targets), proposals=proposals)
