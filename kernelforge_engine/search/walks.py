"""Ways to choose a parent without the published rule."""

from dataclasses import dataclass
from math import ceil, inf, log

from kernelforge_engine.search.tree import Tree, TreeNode


def fastest(tree: Tree) -> TreeNode:
    """The fastest node so far, eager included; of equal ones the oldest."""
    return tree.known(_fastest)


def _fastest(tree: Tree) -> TreeNode:
    return min(tree, key=_latency)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The fastest node, where every child that a node has counts `toll` against it, in ln(time).

    A node is revised while it is well ahead, and left for the next best when its children bring
    nothing: at a toll of 0.1, one with seven children counts like one without any that takes twice
    as long. An open lease is a child to come, so that several agents go to several nodes.
    """

    toll: float

    def choose(self, tree: Tree) -> TreeNode:
        """The node that is the fastest with its toll; of equal ones the oldest."""
        best, lowest = tree.root, inf
        for height, node in tree.known(self.heights):
            if height >= lowest:
                break  # a lease makes no node better
            now = height + self.toll * tree.held(node)
            if now < lowest:
                best, lowest = node, now
        return best

    def heights(self, tree: Tree) -> list[tuple[float, TreeNode]]:
        """Every timed node by ln(time) with the toll of its children, the lowest first."""
        heights = [
            (log(node.latency_us / tree.eager_us) + self.toll * len(tree.children(node)), node)
            for node in tree
            if node.latency_us is not None
        ]
        return sorted(heights, key=lambda found: found[0])


def newest(tree: Tree) -> TreeNode:
    """The last node that was timed: every proposal revises the one before, whatever it gave."""
    return next(n for n in reversed(tree) if n.latency_us is not None or n is tree.root)


@dataclass(frozen=True, kw_only=True)
class Beam:
    """Level by level: the `width` fastest nodes of a level share `width` x `branch` children."""

    width: int
    branch: int

    def choose(self, tree: Tree) -> TreeNode:
        """The member of the deepest level begun that has the fewest children."""
        members = [tree.root]
        while True:
            share = ceil(self.width * self.branch / len(members))
            thin = min(members, key=tree.width)
            if tree.width(thin) < share:
                return thin
            below = [c for m in members for c in tree.children(m) if c.latency_us is not None]
            if not below:
                return thin
            members = sorted(below, key=_latency)[: self.width]


def _latency(node: TreeNode) -> float:
    return inf if node.latency_us is None else node.latency_us
