"""Timing a node against eager, and filing what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from kernelforge_engine.calls import Json
from kernelforge_engine.children import Children
from kernelforge_engine.errors import MeasurementFailed, NodeInvalid
from kernelforge_engine.exchanges import Notice, Progress, Settings
from kernelforge_engine.members import ends
from kernelforge_engine.pool.orders import Probed, Timed, TimeOrder
from kernelforge_engine.records import Node, Outcome, Timing, Variant
from kernelforge_engine.store.stores import Stores
from kernelforge_engine.store.trees import is_valid
from kernelforge_engine.submission import Candidate, Submitter, plans_at


class Benchmarker:
    """Times the nodes of one project."""

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        children: Children,
        submitter: Submitter,
        secret: Callable[[], str],
    ) -> None:
        self._settings, self._captures, self._trees = settings, stores.captures, stores.trees
        self._children, self._submitter, self._secret = children, submitter, secret

    async def benchmark(self, node_id: str, machine: Probed, notice: Notice) -> Node:
        """Time a node under the device's turn; the node with its timing.

        Raises:
            BadOption: it is eager itself.
            NodeInvalid: its output is not right any more, which is on record from then on.
            MeasurementFailed: it could not be run.
        """
        node = await self._trees.node(node_id)
        if node.verdict is not None and not is_valid(node):
            raise NodeInvalid(node=node_id, why=node.verdict.reason)
        variant = await self._captures.variant(node.variant_id)
        candidate = await self._submitter.rebuilt(node, variant, machine.archs)
        async with self._children.turn(variant.call.backend, notice):
            return await self._timed(node, variant, candidate, notice)

    async def timed(
        self, variant: Variant, candidate: Candidate, attempt: int, notice: Notice
    ) -> Timed:
        """Time a candidate under the device's turn; nothing is filed."""
        async with self._children.turn(variant.call.backend, notice):
            return await self._time(variant, candidate, attempt, notice)

    async def _timed(
        self, node: Node, variant: Variant, candidate: Candidate, notice: Notice
    ) -> Node:
        """Time a node and file what came of it, before the next attempt is counted."""
        attempt = _attempt(await self._trees.nodes(variant.id))
        timed = await self._time(variant, candidate, attempt, notice)
        if timed.verdict is not None:
            await self._trees.file_verdict(node.id, timed.verdict, timed.seconds)
            raise NodeInvalid(node=node.id, why=timed.verdict.reason)
        if timed.timing is None:
            raise MeasurementFailed(what=f"node {node.id}", why="no timing came back")
        notice(Progress(done=1, total=1, text=str(timed.timing.outcome)))
        stands = standing(node.timing, timed.timing)
        return await self._trees.file_timing(node.id, stands, timed.seconds)

    async def _time(
        self, variant: Variant, candidate: Candidate, attempt: int, notice: Notice
    ) -> Timed:
        notice(Progress(done=0, total=1, text="timing it against eager"))
        return await self._children.time(
            TimeOrder(
                variant=variant,
                plan=candidate.plan,
                artifact=candidate.artifact,
                blobs=str(self._settings.blobs),
                shims=str(self._settings.cache),
                secret=self._secret(),
                environment=self._settings.environment,
                others=plans_at(candidate.source, variant, ends(variant)),
                attempt=attempt,
            )
        )


def standing(before: Timing | None, found: Timing) -> Timing:
    """What stands of a node after another benchmark: the newer timing, but for an inconclusive one
    that does not contradict a win. That win stays, with the other noted as `again`: a machine that
    was busy for a moment says nothing of the kernel. It counts as an attempt all the same."""
    if before is None or before.outcome != Outcome.FASTER:
        return found
    if found.outcome != Outcome.INCONCLUSIVE or found.high < before.low:
        return found
    again: dict[str, Json] = {
        "speedup": found.speedup, "low": found.low, "high": found.high,
        "why": found.evidence.get("why"),
    }  # fmt: skip
    attempt = found.evidence.get("attempt")
    return replace(before, evidence={**before.evidence, "attempt": attempt, "again": again})


def _attempt(nodes: Sequence[Node]) -> int:
    """The number of the next benchmark of a variant; a node that was found wrong was no attempt."""
    timings = [node.timing for node in nodes if node.timing]
    latest = max((int(str(t.evidence.get("attempt", 0))) for t in timings), default=0)
    return 1 + max(len(timings), latest)
