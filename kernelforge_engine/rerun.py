"""Judging and timing the kernels of a cast again on this machine, from the cast alone."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kernelforge_engine.cast.manifest import CastFile, Entry
from kernelforge_engine.children import Children
from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.evidence import Sample
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
from kernelforge_engine.store.samples import made_up, stand_in

UNTIMED_US = 1e5  # the limit on a run is a multiple of eager's time
FILES = {"aten::from_file"}  # the Judge runs what a cast names, and this one makes the file
MOST_US = 1e7  # a cast may say anything of its eager time
NOT_ANY_MORE = (Outcome.SLOWER, Outcome.IMPLAUSIBLE)


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """What became of one entry: its verdict and timing here, or why it could not be run. Its inputs
    resembled the `captured` ones, or were `normal` where the cast carries no values of them."""

    node_id: str
    operator: str
    variant: str
    then: Timing | None
    verdict: Verdict | None = None
    now: Timing | None = None
    inputs: Literal["captured", "normal"] = "captured"
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether it is valid here, and was timed and not found slower."""
        valid = self.verdict is not None and self.verdict.status == Status.VALID
        return valid and self.now is not None and self.now.outcome not in NOT_ANY_MORE


@dataclass(frozen=True, kw_only=True)
class Trial:
    """An entry that was run again, what became of it, and what was built for that: `image` is the
    device code of a cuda entry."""

    entry: Entry
    row: Rerun
    artifact: Artifact | None = None
    image: bytes | None = None


class Rerunner:
    """Works on casts with the children of one engine, in a folder of its own."""

    def __init__(
        self, settings: Settings, children: Children, machine: Probed, secret: Callable[[], str]
    ) -> None:
        self._settings, self._children = settings, children
        self._machine, self._secret = machine, secret

    async def run(self, cast: CastFile, notice: Notice) -> tuple[Rerun, ...]:
        """Every entry in turn; one that cannot be run stops no other."""
        return tuple(trial.row for trial in await self.trials(cast, notice))

    async def trials(self, cast: CastFile, notice: Notice) -> tuple[Trial, ...]:
        """The same, with what was built."""
        found = []
        for number, entry in enumerate(cast.entries):
            text = f"{entry.call.name} of {entry.node_id}"
            notice(Progress(done=number, total=len(cast.entries), text=text))
            with tempfile.TemporaryDirectory(prefix="kernelforge-") as folder:
                found.append(await self._entry(cast, entry, Path(folder), notice))
        return tuple(found)

    async def _entry(self, cast: CastFile, entry: Entry, folder: Path, notice: Notice) -> Trial:
        values = captured(entry)
        row = Rerun(
            node_id=entry.node_id,
            operator=entry.call.name,
            variant=variant_text(entry.call),
            then=entry.timing,
            inputs="captured" if values or not entry.call.inputs else "normal",
        )
        trial = Trial(entry=entry, row=row)
        if entry.backend not in self._machine.archs:
            return replace(trial, row=replace(row, why=f"there is no {entry.backend} device here"))
        if FILES & _operators(entry):
            return replace(trial, row=replace(row, why="it runs an operator that opens files"))
        try:
            variant = _variant(entry, values or _normal(entry), folder / "blobs")
            artifact = await self._built(cast, entry, folder)
            if isinstance(artifact, Verdict):
                return replace(trial, row=replace(row, verdict=artifact))
            async with self._children.turn_on_gpu(entry.backend, notice):
                judged = await self._children.judge(self._judge(entry, variant, artifact, folder))
            row = replace(row, verdict=judged.verdict)
            if judged.verdict.status == Status.VALID:
                order = self._time(entry, variant, artifact, folder)
                row = await self._timed(row, entry, order, notice)
            return replace(trial, row=row, artifact=artifact, image=_image(artifact))
        except (KernelForgeError, ValueError) as error:
            return replace(trial, row=replace(row, why=str(error)))

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


def captured(entry: Entry) -> tuple[Sample, ...]:
    """The values that a cast carries of an entry's inputs; none where some are missing."""
    found = (o.samples for o in entry.origins if len(o.samples) == len(entry.call.inputs))
    return next(found, ())


def parameters(entry: Entry) -> tuple[int, ...]:
    """Which of an entry's inputs are known to be parameters or buffers of the model."""
    found = next((o.parameters for o in entry.origins if o.parameters), ())
    return tuple(index for index in found if 0 <= index < len(entry.call.inputs))


def _operators(entry: Entry) -> set[str]:
    steps = entry.call.region.steps if entry.call.region else ()
    return {entry.call.operator, *(step.operator for step in steps)}


def _image(artifact: Artifact) -> bytes | None:
    """The device code of a cuda artifact; native host code never leaves its machine."""
    return Path(artifact.path).read_bytes() if artifact.backend == "cuda" else None


def _normal(entry: Entry) -> tuple[Sample, ...]:
    """Values that were not captured, for inputs that can have any.

    Raises:
        ValueError: an input has integers, which may be places or counts, or a type without normal
            values: it would not be known what they mean.
    """
    found = []
    for index, spec in enumerate(entry.call.inputs):
        values = made_up(spec.dtype)
        if values is None:
            why = (
                f"the cast carries no values of its inputs, and those of in{index} ({spec.dtype}) "
                "cannot be made up; ask for a cast that was exported with samples"
            )
            raise ValueError(why)
        found.append(values)
    return tuple(found)


def _variant(entry: Entry, samples: Sequence[Sample], blobs: Path) -> Variant:
    """A variant as a capture would have made it, with inputs like these.

    Raises:
        ValueError: the values are damaged.
    """
    eager_us = entry.timing.eager_us if entry.timing else UNTIMED_US
    return Variant(
        id=entry.node_id,
        card_id="",
        call=entry.call,
        calls=entry.calls,
        eager_us=min(eager_us, MOST_US) if eager_us > 0 else UNTIMED_US,
        share=entry.share,
        floor_us=0.0,
        module="",
        target=True,
        reason=None,
        parameters=parameters(entry),
        examples=(
            tuple(
                stand_in(blobs, values, spec)
                for values, spec in zip(samples, entry.call.inputs, strict=True)
            ),
        ),
    )
