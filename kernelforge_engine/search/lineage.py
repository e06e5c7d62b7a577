"""What was tried and what it gave, for whoever writes the next candidate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelforge_engine.records import Node, Outcome
from kernelforge_engine.search.tree import Tree, TreeNode


@dataclass(frozen=True, kw_only=True)
class Step:
    """One node as the author after it needs it.

    Attributes:
        speedup: over eager as its benchmark found it, side by side; None until it is timed.
        gain: over the node that it revises, by their times in two benchmarks.
        below: how many nodes were made from it, directly or not.
        best_below: the gain over this node of the fastest of them.
    """

    node_id: str
    idea: str
    outcome: Outcome | None
    speedup: float | None
    gain: float | None
    below: int
    best_below: float | None


def steps(tree: Tree, shown: Iterable[TreeNode], nodes: Mapping[str, Node]) -> tuple[Step, ...]:
    """The steps that led to these nodes of a tree."""
    return tuple(_step(tree, seen, nodes[seen.id]) for seen in shown)


def _step(tree: Tree, seen: TreeNode, node: Node) -> Step:
    parent = tree.parent(seen)
    speedup = node.timing.speedup if node.timing else None
    # Eager's time in a benchmark is the one to compare with: a capture's was taken at another time.
    before_us = parent.latency_us if parent and parent is not tree.root else None
    return Step(
        node_id=seen.id,
        idea=node.note,
        outcome=node.timing.outcome if node.timing else None,
        speedup=speedup,
        gain=_over(before_us, seen.latency_us) if before_us else speedup,
        below=tree.size(seen) - 1,
        best_below=_over(seen.latency_us, tree.best_below_us(seen)),
    )


def _over(before_us: float | None, after_us: float | None) -> float | None:
    return before_us / after_us if before_us and after_us else None
