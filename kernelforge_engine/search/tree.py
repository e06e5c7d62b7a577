"""A revision tree as the search sees it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, kw_only=True)
class TreeNode:
    """One node: `pending` counts the open leases on it, `latency_us` is None until it is timed."""

    id: str
    parent_id: str | None
    visits: int
    pending: int
    latency_us: float | None

    @property
    def weight(self) -> int:
        """Real and virtual visits."""
        return self.visits + self.pending


class Tree:
    """The nodes of one variant, indexed; the node without a parent is the root."""

    def __init__(self, nodes: Iterable[TreeNode]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._children: dict[str, list[TreeNode]] = {}
        for node in self._nodes.values():
            if node.parent_id is not None:
                self._children.setdefault(node.parent_id, []).append(node)
        self.root = next(n for n in self._nodes.values() if n.parent_id is None)

    def children(self, node: TreeNode) -> list[TreeNode]:
        """The children of a node, oldest first."""
        return self._children.get(node.id, [])

    def weight(self, node: TreeNode) -> int:
        """The visits of a node, with the virtual visits of every open lease in its subtree."""
        return node.visits + self._pending[node.id]

    def best_us(self, node: TreeNode) -> float | None:
        """The lowest latency in the subtree of a node."""
        return self._best[node.id]

    @cached_property
    def _order(self) -> list[TreeNode]:
        """Children before parents."""
        order, stack = [], [self.root]
        while stack:
            node = stack.pop()
            order.append(node)
            stack += self.children(node)
        return order[::-1]

    @cached_property
    def _pending(self) -> dict[str, int]:
        pending: dict[str, int] = {}
        for node in self._order:
            pending[node.id] = node.pending + sum(pending[c.id] for c in self.children(node))
        return pending

    @cached_property
    def _best(self) -> dict[str, float | None]:
        best: dict[str, float | None] = {}
        for node in self._order:
            known = [best[c.id] for c in self.children(node)] + [node.latency_us]
            best[node.id] = min((us for us in known if us is not None), default=None)
        return best
