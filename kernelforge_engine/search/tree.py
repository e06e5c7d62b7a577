"""A revision tree as the search sees it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

T = TypeVar("T")


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
    """The nodes of one variant in the order they were filed, indexed; the node without a parent is
    the root, eager itself."""

    def __init__(self, nodes: Iterable[TreeNode]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._children: dict[str, list[TreeNode]] = {}
        for node in self._nodes.values():
            if node.parent_id is not None:
                self._children.setdefault(node.parent_id, []).append(node)
        self.root = next(n for n in self._nodes.values() if n.parent_id is None)
        self._best = self._lowest()
        self._known: dict[object, Any] = {}
        self._held: dict[str, int] = {}
        self._pending: dict[str, int] = {}
        self.hold({node.id: node.pending for node in self._nodes.values() if node.pending})

    def __len__(self) -> int:
        return len(self._nodes)

    def holding(self, held: Mapping[str, int]) -> "Tree":
        """The same tree under other leases, so many on each of these nodes; how long that takes
        depends on how many are others, and how deep they lie, not on how many nodes there are."""
        other = copy(self)
        other.hold(held)
        return other

    def hold(self, held: Mapping[str, int]) -> None:
        """Put these leases on the tree, and take all others away."""
        pending = dict(self._pending)
        for node_id in {*held, *self._held}:
            if more := held.get(node_id, 0) - self._held.get(node_id, 0):
                self._add(pending, node_id, more)
        self._held, self._pending = dict(held), pending

    @property
    def eager_us(self) -> float:
        """The time of the root."""
        return self.root.latency_us or 1.0

    def __iter__(self) -> Iterator[TreeNode]:
        """Every node, oldest first."""
        return iter(self._nodes.values())

    def __reversed__(self) -> Iterator[TreeNode]:
        return reversed(self._nodes.values())

    def known(self, work: Callable[["Tree"], T]) -> T:
        """What `work` finds out about the nodes alone, whatever is leased; it is asked once."""
        if work not in self._known:
            self._known[work] = work(self)
        found: T = self._known[work]
        return found

    def node(self, node_id: str) -> TreeNode:
        """One node."""
        return self._nodes[node_id]

    def parent(self, node: TreeNode) -> TreeNode | None:
        """What a node was made from; eager itself was made from nothing."""
        return None if node.parent_id is None else self._nodes[node.parent_id]

    def line(self, node: TreeNode) -> list[TreeNode]:
        """The nodes from the first version down to this one, eager left out."""
        line: list[TreeNode] = []
        above: TreeNode | None = node
        while above is not None and above is not self.root:
            line.append(above)
            above = self.parent(above)
        return line[::-1]

    def held(self, node: TreeNode) -> int:
        """The open leases on a node."""
        return self._held.get(node.id, 0)

    def seen(self) -> tuple[TreeNode, ...]:
        """Every node with its open leases, oldest first."""
        return tuple(replace(node, pending=self.held(node)) for node in self)

    def children(self, node: TreeNode) -> list[TreeNode]:
        """The children of a node, oldest first."""
        return self._children.get(node.id, [])

    def width(self, node: TreeNode) -> int:
        """The children of a node; an open lease on it counts as a child to come."""
        return len(self.children(node)) + self.held(node)

    def weight(self, node: TreeNode) -> int:
        """The visits of a node, with the virtual visits of every open lease in its subtree."""
        return node.visits + self._pending.get(node.id, 0)

    def best_us(self, node: TreeNode) -> float | None:
        """The lowest latency in the subtree of a node."""
        return self._best[node.id]

    def best_below_us(self, node: TreeNode) -> float | None:
        """The lowest latency in the subtree of a node, the node itself left out."""
        known = [self._best[c.id] for c in self.children(node)]
        return min((us for us in known if us is not None), default=None)

    def size(self, node: TreeNode) -> int:
        """How many nodes the subtree of a node has."""
        return self.known(Tree._sizes)[node.id]

    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for node in self._order():
            sizes[node.id] = 1 + sum(sizes[c.id] for c in self.children(node))
        return sizes

    def _order(self) -> list[TreeNode]:
        """Children before parents."""
        order, stack = [], [self.root]
        while stack:
            node = stack.pop()
            order.append(node)
            stack += self.children(node)
        return order[::-1]

    def _add(self, pending: dict[str, int], node_id: str, more: int) -> None:
        """Count leases on a node for every node that has it in its subtree."""
        above: str | None = node_id
        while above is not None:
            pending[above] = pending.get(above, 0) + more
            above = self._nodes[above].parent_id

    def _lowest(self) -> dict[str, float | None]:
        best: dict[str, float | None] = {}
        for node in self._order():
            known = [best[c.id] for c in self.children(node)] + [node.latency_us]
            best[node.id] = min((us for us in known if us is not None), default=None)
        return best
