"""What was tried and what it gave, for whoever writes the next candidate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelforge_engine.records import Node, Outcome
from kernelforge_engine.search.tree import Tree, TreeNode


@dataclass(frozen=True, kw_only=True)
class Step:
    """One node as the author after it needs it.

    Attributes:
        speedup: over eager, None until it is timed.
        gain: over the node that it revises.
        below: how many nodes were made from it, directly or not.
        best_below: the speed-up over eager of the fastest of them.
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
    below = tree.best_below_us(seen)
    parent = tree.parent(seen)
    return Step(
        node_id=seen.id,
        idea=node.note,
        outcome=node.timing.outcome if node.timing else None,
        speedup=_over(tree.eager_us, seen.latency_us),
        gain=_over(parent.latency_us if parent else None, seen.latency_us),
        below=tree.size(seen) - 1,
        best_below=_over(tree.eager_us, below),
    )


def _over(before_us: float | None, after_us: float | None) -> float | None:
    return before_us / after_us if before_us and after_us else None
