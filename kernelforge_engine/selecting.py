"""Choosing what to revise: the search over a tree as it is on disk, and a lease on its choice."""

from collections.abc import Callable

from kernelforge_engine.errors import NotATarget
from kernelforge_engine.exchanges import Selection
from kernelforge_engine.records import Lease, Variant
from kernelforge_engine.search.policy import policy as policy_named
from kernelforge_engine.search.policy import select
from kernelforge_engine.store.captures import Captures
from kernelforge_engine.store.outlines import Outlines
from kernelforge_engine.store.trees import Trees


class Selector:
    """Hands out leases, each for `lease_seconds`."""

    def __init__(
        self,
        captures: Captures,
        trees: Trees,
        outlines: Outlines,
        lease_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._captures, self._trees, self._outlines = captures, trees, outlines
        self._lease_seconds, self._clock = lease_seconds, clock

    async def target(self, variant_id: str) -> Variant:
        """A variant that kernels can be written for.

        Raises:
            UnknownId, NotATarget
        """
        variant = await self._captures.variant(variant_id)
        if not variant.target:
            raise NotATarget(variant=variant_id, why=variant.reason)
        return variant

    async def select(self, variant_id: str, holder: str, policy: str) -> Selection:
        """Choose the node to revise and lease it.

        Raises:
            UnknownId, NotATarget, BadOption
        """
        rule = policy_named(policy)
        variant = await self.target(variant_id)
        now = self._clock()
        await self._trees.root(variant_id, now)

        async def choose() -> Lease:
            tree = await self._outlines.tree(variant_id, variant.eager_us, now)
            return Lease(
                id="",
                variant_id=variant_id,
                parent_id=select(tree, rule).id,
                holder=holder,
                policy=policy,
                expires_at=now + self._lease_seconds,
            )

        lease = await self._trees.lease(choose)
        parent = await self._trees.node(lease.parent_id)
        digest = parent.source_digest
        return Selection(
            lease=lease,
            parent=parent,
            source=await self._trees.source(digest) if digest else None,
            children=await self._trees.children(parent.id),
            failed=await self._trees.attempts(variant_id, parent.id),
            rivals=await self._trees.rivals(lease, now),
        )
