"""Judging and timing the kernels of a cast again on this machine, from the cast alone."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kernelforge_engine.cast.manifest import CastFile, Entry
from kernelforge_engine.children import Children
from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.exchanges import Notice, Progress, Settings
from kernelforge_engine.launch.describe import variant_text
from kernelforge_engine.pool.orders import JudgeOrder, Probed, TimeOrder
from kernelforge_engine.pool.protocol import Build, BuildRefused
from kernelforge_engine.records import (
    Artifact,
    Outcome,
    Status,
    Timing,
    Variant,
    Verdict,
)
from kernelforge_engine.store.samples import stand_in

UNTIMED_US = 1e5  # the limit on a run is a multiple of eager's time
NOT_ANY_MORE = (Outcome.SLOWER, Outcome.IMPLAUSIBLE)


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """What became of one entry: its verdict and timing here, or why it could not be run."""

    node_id: str
    operator: str
    variant: str
    then: Timing | None
    verdict: Verdict | None = None
    now: Timing | None = None
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether it is valid here, and was timed and not found slower."""
        valid = self.verdict is not None and self.verdict.status == Status.VALID
        return valid and self.now is not None and self.now.outcome not in NOT_ANY_MORE


class Rerunner:
    """Works on casts with the children of one engine, in a folder of its own."""

    def __init__(
        self, settings: Settings, children: Children, machine: Probed, secret: Callable[[], str]
    ) -> None:
        self._settings, self._children = settings, children
        self._machine, self._secret = machine, secret

    async def run(self, cast: CastFile, notice: Notice) -> tuple[Rerun, ...]:
        """Every entry in turn; one that cannot be run stops no other."""
        found = []
        for number, entry in enumerate(cast.entries):
            text = f"{entry.call.name} of {entry.node_id}"
            notice(Progress(done=number, total=len(cast.entries), text=text))
            with tempfile.TemporaryDirectory(prefix="kernelforge-") as folder:
                found.append(await self._entry(cast, entry, Path(folder), notice))
        return tuple(found)

    async def _entry(self, cast: CastFile, entry: Entry, folder: Path, notice: Notice) -> Rerun:
        row = Rerun(
            node_id=entry.node_id,
            operator=entry.call.name,
            variant=variant_text(entry.call),
            then=entry.timing,
        )
        if entry.backend not in self._machine.archs:
            return replace(row, why=f"there is no {entry.backend} device here")
        try:
            variant = _variant(entry, folder / "blobs")
            artifact = await self._built(cast, entry, folder)
            if isinstance(artifact, Verdict):
                return replace(row, verdict=artifact)
            judged = await self._children.judge(self._judge(entry, variant, artifact, folder))
            row = replace(row, verdict=judged.verdict)
            if judged.verdict.status != Status.VALID:
                return row
            return await self._timed(
                row, entry, self._time(entry, variant, artifact, folder), notice
            )
        except (KernelForgeError, ValueError) as error:
            return replace(row, why=str(error))

    async def _built(self, cast: CastFile, entry: Entry, folder: Path) -> Artifact | Verdict:
        launches = entry.resolved.launches
        reply = await self._children.build(
            Build(
                text=cast.source(entry).text,
                backend=entry.backend,
                arch=self._machine.archs[entry.backend],
                launches=tuple((x.kernel, tuple(a.kind for a in x.args)) for x in launches),
                folder=str(folder / "artifacts"),
            )
        )
        if isinstance(reply, BuildRefused):
            refused = "the compiler refused it"
            return Verdict(status=Status.COMPILE_FAILED, reason=refused, log=reply.log)
        return reply.artifact

    def _judge(
        self, entry: Entry, variant: Variant, artifact: Artifact, folder: Path
    ) -> JudgeOrder:
        return JudgeOrder(
            variant=variant,
            plan=entry.resolved,
            artifact=artifact,
            blobs=str(folder / "blobs"),
            secret=self._secret(),
            environment=self._settings.environment,
        )

    def _time(self, entry: Entry, variant: Variant, artifact: Artifact, folder: Path) -> TimeOrder:
        return TimeOrder(
            variant=variant,
            plan=entry.resolved,
            artifact=artifact,
            blobs=str(folder / "blobs"),
            shims=str(self._settings.cache),
            secret=self._secret(),
            environment=self._settings.environment,
        )

    async def _timed(self, row: Rerun, entry: Entry, order: TimeOrder, notice: Notice) -> Rerun:
        async with self._children.turn(entry.backend, notice):
            timed = await self._children.time(order)
        return replace(row, verdict=timed.verdict or row.verdict, now=timed.timing)


def _variant(entry: Entry, blobs: Path) -> Variant:
    """A variant as a capture would have made it, with inputs like those that were captured.

    Raises:
        ValueError: the cast holds no values to draw from, or damaged ones.
    """
    samples = entry.origin.samples if entry.origin else ()
    if len(samples) != len(entry.call.inputs):
        why = "it holds no values of its inputs to draw from"
        raise ValueError(why)
    return Variant(
        id=entry.node_id,
        card_id="",
        call=entry.call,
        calls=entry.calls,
        eager_us=entry.timing.eager_us if entry.timing else UNTIMED_US,
        share=entry.share,
        floor_us=0.0,
        module="",
        target=True,
        reason=None,
        examples=(tuple(stand_in(blobs, each) for each in samples),),
    )
