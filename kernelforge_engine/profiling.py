"""Profiling a node: the digest on record, or a new one under the turn of its GPU."""

from collections.abc import Callable
from dataclasses import replace

import anyio

from kernelforge_engine import codec
from kernelforge_engine.children import Children
from kernelforge_engine.errors import NodeInvalid
from kernelforge_engine.exchanges import Notice, Progress, Settings
from kernelforge_engine.pool.orders import Probed, ProfileOrder
from kernelforge_engine.profiles import Profile
from kernelforge_engine.records import Variant
from kernelforge_engine.store.profiles import Profiles
from kernelforge_engine.store.stores import Stores
from kernelforge_engine.store.trees import is_valid
from kernelforge_engine.submission import Candidate, Submitter


class Profiler:
    """Profiles the nodes of one project."""

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        profiles: Profiles,
        children: Children,
        submitter: Submitter,
        clock: Callable[[], float],
    ) -> None:
        self._settings, self._captures, self._trees = settings, stores.captures, stores.trees
        self._profiles, self._children = profiles, children
        self._submitter, self._clock = submitter, clock

    async def latest(self, node_id: str) -> Profile | None:
        """The profile of a node that was made last, if there is one."""
        return await self._profiles.latest(node_id)

    async def profile(
        self, node_id: str, machine: Probed, *, refresh: bool, notice: Notice
    ) -> Profile:
        """The profile of a node's binary on this machine; a new one where none is on record, or
        with `refresh`.

        Raises:
            BadOption: the node is eager itself.
            NodeInvalid: it is not valid any more.
            NotProfiled, MeasurementFailed: it cannot be loaded, or not be built any more.
        """
        node = await self._trees.node(node_id)
        if node.verdict is not None and not is_valid(node):
            raise NodeInvalid(node=node_id, why=node.verdict.reason)
        variant = await self._captures.variant(node.variant_id)
        candidate = await self._submitter.rebuilt(node, variant, machine.archs)
        known = None if refresh else await self._known(node_id, variant, machine, candidate)
        if known is not None:
            return known
        async with self._children.turn_on_gpu(variant.call.backend, notice):
            notice(Progress(done=0, total=1, text="profiling its kernels"))
            found = await self._children.profile(self._order(variant, candidate))
        profile = replace(found.profile, measured_at=self._clock())
        await self._profiles.file(node_id, profile)
        notice(Progress(done=1, total=1, text="profiled"))
        return profile

    async def _known(
        self, node_id: str, variant: Variant, machine: Probed, candidate: Candidate
    ) -> Profile | None:
        """The profile on record of this very binary and plan on the device of this machine."""
        binary = codec.sha256(await anyio.Path(candidate.artifact.path).read_bytes())
        plan = codec.sha256(codec.dumps(candidate.plan))
        device = next(d.name for d in machine.devices if d.backend == variant.call.backend)
        return await self._profiles.of(node_id, binary, plan, device)

    def _order(self, variant: Variant, candidate: Candidate) -> ProfileOrder:
        return ProfileOrder(
            variant=variant,
            plan=candidate.plan,
            artifact=candidate.artifact,
            blobs=str(self._settings.blobs),
            rates=str(self._settings.cache),
            environment=self._settings.environment,
        )
