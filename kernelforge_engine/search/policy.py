"""Which node to revise next: the published rule, and the same rule on a scale-free value.

Source of the rule: "Kernel Forge", arXiv 2607.24762, with one visit per ancestor and result.
Progressive widening: a node takes another child while |children| <= floor(N ** alpha), alpha
annealed from 0.5 to 0.3 over the first 1000 visits of the root. Otherwise the search goes down to
the child with the lowest L - C sqrt(ln N_parent / N_child), L the best value in its subtree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, inf, log, sqrt

from kernelforge_engine.errors import BadOption
from kernelforge_engine.search.tree import Tree, TreeNode


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The constants of the rule; `value` turns (latency in us, eager in us) into L."""

    name: str
    value: Callable[[float, float], float]
    exploration: float = 1.0
    widening_start: float = 0.5
    widening_end: float = 0.3
    annealing_visits: int = 1000
    stagnation_visits: int = 10


def _milliseconds(latency_us: float, _eager_us: float) -> float:
    return latency_us / 1000.0


def _log_ratio(latency_us: float, eager_us: float) -> float:
    return log(latency_us / eager_us)


POLICIES = {
    "log": Policy(name="log", value=_log_ratio),
    "paper": Policy(name="paper", value=_milliseconds),
}


def policy(name: str) -> Policy:
    """A policy by name.

    Raises:
        BadOption: there is no such policy.
    """
    if name not in POLICIES:
        raise BadOption(
            field="policy", value=name, why="unknown policy", accepted=" or ".join(POLICIES)
        )
    return POLICIES[name]


def select(tree: Tree, rule: Policy) -> TreeNode:
    """The node that gets the next child."""
    eager_us = tree.root.latency_us or 1.0
    node = tree.root
    while not widens(tree, node, rule):
        candidates = [c for c in tree.children(node) if not stagnant(tree, c, rule)]
        chosen = min(candidates, key=lambda c: score(tree, c, node, rule, eager_us), default=None)
        if chosen is None or tree.best_us(chosen) is None:
            return node
        node = chosen
    return node


def widens(tree: Tree, node: TreeNode, rule: Policy) -> bool:
    """Whether a node takes another child; an open lease counts as a child to come."""
    progress = min(1.0, tree.weight(tree.root) / rule.annealing_visits)
    alpha = rule.widening_start - (rule.widening_start - rule.widening_end) * progress
    room: int = floor(max(1, tree.weight(node)) ** alpha)
    return tree.width(node) <= room


def stagnant(tree: Tree, node: TreeNode, rule: Policy) -> bool:
    """Whether a node was visited often and nothing below it improved on it."""
    best = tree.best_us(node)
    if node.visits < rule.stagnation_visits or node.latency_us is None or best is None:
        return False
    return best >= node.latency_us


def score(tree: Tree, child: TreeNode, parent: TreeNode, rule: Policy, eager_us: float) -> float:
    """What `select` minimises among the children of `parent`; an untimed subtree comes last."""
    best = tree.best_us(child)
    if best is None:
        return inf
    spread = sqrt(log(max(1, tree.weight(parent))) / max(1, tree.weight(child)))
    return rule.value(best, eager_us) - rule.exploration * spread
