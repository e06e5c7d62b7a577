"""A recorded search: what happened to a tree in order, and the choices it makes again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kernelforge_engine.search.policy import policy
from kernelforge_engine.search.tree import Tree, TreeNode


class Kind(StrEnum):
    """What happened: a node was filed or timed, a lease was given or ended."""

    FILED = "filed"
    TIMED = "timed"
    LEASED = "leased"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class Event:
    """One line of the journal of a variant.

    Attributes:
        node_id: the node that was filed, timed, or leased as a parent.
        visits: what was added to the node and to every ancestor of it; of a filed node, its own.
        latency_us: what the search may believe of the node from then on; of a lease, eager's time.
        policy: what chose the parent of a lease, None where that was not recorded.
        at: when a lease was given, on the clock of whoever gave it.
    """

    kind: Kind
    node_id: str | None = None
    parent_id: str | None = None
    lease_id: str | None = None
    policy: str | None = None
    visits: int = 0
    latency_us: float | None = None
    at: float | None = None
    expires_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A lease: the parent it was given for, and the one that the same policy chooses again."""

    lease_id: str
    policy: str
    recorded: str
    replayed: str


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A search done again from its journal.

    Attributes:
        tree: the tree that the journal gives.
        filed: the tree that is on record, where the two are to be compared.
    """

    choices: tuple[Choice, ...]
    tree: tuple[TreeNode, ...]
    filed: tuple[TreeNode, ...] = ()

    @property
    def differing(self) -> tuple[Choice, ...]:
        """The choices that did not come out the same."""
        return tuple(c for c in self.choices if c.recorded != c.replayed)


@dataclass
class _State:
    """The tree between two events, without its virtual visits, and the leases that have not
    ended."""

    nodes: dict[str, TreeNode] = field(default_factory=dict)
    leases: dict[str, tuple[str, float]] = field(default_factory=dict)

    def step(self, event: Event) -> None:
        node_id, lease_id = event.node_id or "", event.lease_id or ""
        if event.kind == Kind.FILED:
            self.nodes[node_id] = TreeNode(
                id=node_id,
                parent_id=event.parent_id,
                visits=event.visits,
                pending=0,
                latency_us=event.latency_us,
            )
        elif event.kind == Kind.TIMED:
            self._visit(node_id, event.visits)
            self.nodes[node_id] = replace(self.nodes[node_id], latency_us=event.latency_us)
        elif event.kind == Kind.LEASED:
            self.leases[lease_id] = node_id, event.expires_at or 0.0
        else:
            self.leases.pop(lease_id, None)

    def _visit(self, node_id: str | None, visits: int) -> None:
        while node_id is not None:
            node = self.nodes[node_id]
            self.nodes[node_id] = replace(node, visits=node.visits + visits)
            node_id = node.parent_id

    def seen(self, eager_us: float | None, at: float) -> tuple[TreeNode, ...]:
        """The tree as a policy sees it at a time: open leases are virtual visits."""
        held = [parent for parent, expires in self.leases.values() if expires > at]
        return tuple(
            replace(
                node,
                pending=held.count(node.id),
                latency_us=eager_us if node.parent_id is None else node.latency_us,
            )
            for node in self.nodes.values()
        )


def replay(events: Iterable[Event], eager_us: float, at: float) -> Replay:
    """Make every recorded choice again; the tree is the one after the last event, at `at`."""
    state = _State()
    choices = tuple(_choices(events, state))
    return Replay(choices=choices, tree=state.seen(eager_us, at))


def _choices(events: Iterable[Event], state: _State) -> Iterator[Choice]:
    for event in events:
        if event.kind == Kind.LEASED and event.policy is not None:
            tree = Tree(state.seen(event.latency_us, event.at or 0.0))
            yield Choice(
                lease_id=event.lease_id or "",
                policy=event.policy,
                recorded=event.node_id or "",
                replayed=policy(event.policy)(tree).id,
            )
        state.step(event)
