"""The published rule of the tree search, and the same rule on a value without a scale.

Source: "Kernel Forge", arXiv 2607.24762, with one visit per ancestor and result. Progressive
widening: a node takes another child while |children| <= floor(N ** alpha), alpha annealed from 0.5
to 0.3 over the first 1000 visits of the root. Otherwise the search goes down to the child with the
lowest L - C sqrt(ln N_parent / N_child), L the best value in its subtree, C = 1. A child that was
visited 10 times with nothing below it better than itself is left alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, inf, log, sqrt

from kernelforge_engine.search.tree import Tree, TreeNode


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The constants of the rule; `value` turns (latency in us, eager in us) into L."""

    value: Callable[[float, float], float]
    exploration: float = 1.0
    widening_start: float = 0.5
    widening_end: float = 0.3
    annealing_visits: int = 1000
    stagnation_visits: int = 10

    def choose(self, tree: Tree) -> TreeNode:
        """The node that gets the next child."""
        node = tree.root
        while not self.widens(tree, node):
            open_ones = [c for c in tree.children(node) if not self.stagnant(tree, c)]
            chosen = min(open_ones, key=lambda c: self.score(tree, c, node), default=None)
            if chosen is None or tree.best_us(chosen) is None:
                return node
            node = chosen
        return node

    def widens(self, tree: Tree, node: TreeNode) -> bool:
        """Whether a node takes another child."""
        progress = min(1.0, tree.weight(tree.root) / self.annealing_visits)
        alpha = self.widening_start - (self.widening_start - self.widening_end) * progress
        room: int = floor(max(1, tree.weight(node)) ** alpha)
        return tree.width(node) <= room

    def stagnant(self, tree: Tree, node: TreeNode) -> bool:
        """Whether a node was visited often and nothing below it improved on it."""
        best = tree.best_us(node)
        if node.visits < self.stagnation_visits or node.latency_us is None or best is None:
            return False
        return best >= node.latency_us

    def score(self, tree: Tree, child: TreeNode, parent: TreeNode) -> float:
        """What `choose` minimises among children; an untimed subtree comes last."""
        best = tree.best_us(child)
        if best is None:
            return inf
        spread = sqrt(log(max(1, tree.weight(parent))) / max(1, tree.weight(child)))
        return self.value(best, tree.eager_us) - self.exploration * spread


def milliseconds(latency_us: float, _eager_us: float) -> float:
    """L as it is published: at 5 us the exploration is larger than a tenfold gain."""
    return latency_us / 1000.0


def log_ratio(latency_us: float, eager_us: float) -> float:
    """L without a scale: a gain counts the same whatever eager takes."""
    return log(latency_us / eager_us)
