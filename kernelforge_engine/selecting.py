"""Which node to revise next: chosen from what is on disk, leased, and told with what was tried."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelforge_engine.errors import NotATarget
from kernelforge_engine.exchanges import Attempt, Settings
from kernelforge_engine.records import Lease, Node, Variant
from kernelforge_engine.search.journal import Replay, replay
from kernelforge_engine.search.lineage import Step, steps
from kernelforge_engine.search.policy import DEFAULT, policy
from kernelforge_engine.search.tree import Tree
from kernelforge_engine.search.walks import fastest
from kernelforge_engine.store.leases import Request
from kernelforge_engine.store.stores import Stores

REPAIRS = 3
TOLD = 6  # steps of a line, and children, that a selection tells of


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How a parent is to be chosen, and how often a failed proposal may be mended under its lease;
    `call_key` is the client's own key for its call.

    Raises:
        BadOption: there is no such policy.
    """

    holder: str
    policy: str = DEFAULT
    max_repairs: int = REPAIRS
    call_key: str | None = None

    def __post_init__(self) -> None:
        policy(self.policy)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What a search hands out: the lease, its parent, and what the next author should know.

    Attributes:
        line: what led to the parent, the parent last: the latest few of `depth` steps.
        tried: what was made from it, oldest first: the latest few of `children`.
        failed: proposals below it that were not valid, newest first.
        best: the fastest node of the tree, where it is neither the parent nor eager.
        rivals: the leases under which others revise the same parent now.
    """

    lease: Lease
    parent: Node
    source: str | None
    line: tuple[Step, ...]
    depth: int
    tried: tuple[Step, ...]
    children: int
    failed: tuple[Attempt, ...]
    best: Step | None
    rivals: tuple[Lease, ...]


class Selector:
    """Chooses parents in the trees of one project."""

    def __init__(self, settings: Settings, stores: Stores, clock: Callable[[], float]) -> None:
        self._settings, self._captures, self._trees = settings, stores.captures, stores.trees
        self._leases, self._clock = stores.leases, clock

    async def select(self, variant_id: str, wish: Wish) -> Selection:
        """Choose the node to revise and lease it.

        Raises:
            NotATarget: no kernel can be written for this variant.
        """
        variant = await self.target(variant_id)
        now = self._clock()
        await self._trees.root(variant_id, now)
        wanted = Request(
            variant_id=variant_id,
            holder=wish.holder,
            policy=wish.policy,
            at=now,
            expires_at=now + self._settings.lease_seconds,
            max_repairs=wish.max_repairs,
            call_key=wish.call_key,
        )
        lease, tree = await self._leases.take(wanted, variant.eager_us, policy(wish.policy))
        return await self._told(lease, tree)

    async def target(self, variant_id: str) -> Variant:
        """A variant that kernels can be written for.

        Raises:
            NotATarget: this is none.
        """
        variant = await self._captures.variant(variant_id)
        if not variant.target:
            raise NotATarget(variant=variant_id, why=variant.reason)
        return variant

    async def _told(self, lease: Lease, tree: Tree) -> Selection:
        parent = tree.node(lease.parent_id)
        whole_line, all_children = tree.line(parent), tree.children(parent)
        line, children = whole_line[-TOLD:], all_children[-TOLD:]
        best = [n for n in [fastest(tree)] if n not in (tree.root, parent)]
        nodes = await self._trees.named(n.id for n in (parent, *line, *children, *best))
        digest = nodes[parent.id].source_digest
        return Selection(
            lease=lease,
            parent=nodes[parent.id],
            source=None if digest is None else await self._trees.source(digest),
            line=steps(tree, line, nodes),
            depth=len(whole_line),
            tried=steps(tree, children, nodes),
            children=len(all_children),
            failed=await self._trees.attempts(lease.variant_id, parent.id),
            best=next(iter(steps(tree, best, nodes)), None),
            rivals=await self._leases.rivals(lease, self._clock()),
        )

    async def replay(self, variant_id: str) -> Replay:
        """Make every choice of a variant's search again, and its tree, from its journal alone."""
        variant, now = await self._captures.variant(variant_id), self._clock()
        await self._trees.root(variant_id, now)
        events, filed = await self._leases.recorded(variant_id, variant.eager_us, now)
        return replace(replay(events, variant.eager_us, now), filed=filed.seen())
