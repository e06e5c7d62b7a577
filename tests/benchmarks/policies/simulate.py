"""Searches on made-up landscapes: the product's policies and budgets, with made-up results."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log
from random import Random

from policies.landscapes import Family, Landscape, State

from kernelforge_engine.search.budget import Stake
from kernelforge_engine.search.tree import Tree, TreeNode

EAGER_US = 20.0
NOISE = 0.02  # of ln(time), as a benchmark of a small kernel scatters

Choose = Callable[[Tree], TreeNode]


@dataclass
class Search:
    """One search: its tree, the true height of every node, and the best by what was measured.

    The randomness of a proposal depends on the run and on its number only, so that policies which
    choose the same parents see the same results.
    """

    landscape: Landscape
    choose: Choose
    seed: int

    def __post_init__(self) -> None:
        root = TreeNode(id="0", parent_id=None, visits=1, pending=0, latency_us=EAGER_US)
        self.nodes = {"0": root}
        self.states: dict[str, State] = {}
        self.results: tuple[float | None, ...] = ()
        self.best = float("inf")  # the true height of the node that was measured fastest
        self._measured = float("inf")

    def step(self) -> None:
        """One proposal."""
        number = len(self.results) + 1
        random = Random(self.seed * 1_000_003 + number)
        parent = self.choose(Tree(self.nodes.values())).id
        known = self.states.get(parent)
        land = self.landscape
        state = land.first(random) if known is None else land.revised(known, random)
        if state is None:
            self.results += (None,)
            return
        measured = state.height + random.gauss(0.0, NOISE)
        self._file(str(number), parent, state, measured)

    def _file(self, node: str, parent: str, state: State, measured: float) -> None:
        time_us = EAGER_US * exp(measured)
        self.states[node] = state
        self.nodes[node] = TreeNode(
            id=node, parent_id=parent, visits=0, pending=0, latency_us=time_us
        )
        step: str | None = node
        while step is not None:
            found = self.nodes[step]
            self.nodes[step] = replace(found, visits=found.visits + 1)
            step = found.parent_id
        self.results += (exp(-measured),)
        if measured < self._measured:
            self._measured, self.best = measured, state.height


def curve(family: Family, choose: Choose, seed: int, most: int) -> list[float]:
    """ln(speed-up of the best candidate over eager) after each of `most` proposals; where there is
    none yet that of one which takes 20 times as long, as is what is slower still."""
    search = Search(family(Random(seed)), choose, seed)
    found = []
    for _ in range(most):
        search.step()
        found.append(max(-log(20.0), -search.best))
    return found


def from_a_first_version(family: Family, choose: Choose, seed: int, most: int) -> Search:
    """A search whose root is a first version instead of eager, as the published ones are."""
    random = Random(seed)
    land, first = family(random), None
    while first is None:
        first = land.first(random)
    search = Search(land, choose, seed)
    search.states["0"] = first
    search.nodes["0"] = replace(search.nodes["0"], latency_us=EAGER_US * exp(first.height))
    for _ in range(most):
        search.step()
    return search


@dataclass
class Target:
    """An operator of a made-up model, its search, and what a budget knows of it."""

    stake: Stake
    search: Search

    def step(self) -> None:
        self.search.step()
        self.stake = replace(self.stake, results=self.search.results)

    @property
    def saved(self) -> float:
        """The part of the model's time that its best candidate saves; eager serves if none does."""
        return self.stake.share * max(0.0, 1 - exp(min(self.search.best, 50.0)))
