"""Judging and timing every node of a project again on this machine, beside what is on record."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from kernelforge_engine import __version__
from kernelforge_engine.benchmarking import Benchmarker
from kernelforge_engine.errors import DeviceUnwell, KernelForgeError, StoreUnavailable
from kernelforge_engine.exchanges import Attempt, Notice, Progress
from kernelforge_engine.launch.describe import variant_text
from kernelforge_engine.machine import Machine
from kernelforge_engine.pool.orders import Probed
from kernelforge_engine.records import Node, Status, Tier, Timing, Variant, Verdict
from kernelforge_engine.replays import Here, Replay, Replayed
from kernelforge_engine.store.replays import Replays
from kernelforge_engine.store.stores import Stores
from kernelforge_engine.submission import Submitter


@dataclass(frozen=True, kw_only=True)
class Again:
    """What to replay: `attempts` too, and `fresh` rather than where an interrupted one ended."""

    attempts: bool = False
    fresh: bool = False


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """A node or an attempt as the project knows it."""

    id: str
    variant: Variant
    digest: str
    verdict: Verdict
    timing: Timing | None

    @property
    def tier(self) -> Tier:
        """How thoroughly it was judged."""
        known: dict[str, Tier] = {"quick": "quick", "promotion": "promotion"}
        return known.get(str(self.verdict.evidence.get("policy")), "full")

    @property
    def attempt(self) -> int:
        """Which benchmark of its variant it was: it has to show as much again."""
        evidence = self.timing.evidence if self.timing else {}
        return max(1, int(str(evidence.get("attempt") or 1)))

    @property
    def row(self) -> Replayed:
        return Replayed(
            id=self.id,
            variant_id=self.variant.id,
            operator=self.variant.call.name,
            variant=variant_text(self.variant.call),
            before=self.verdict.status,
            then=self.timing,
        )


class Replayer:
    """Replays one project. Nothing that its nodes and attempts have on record is changed."""

    def __init__(
        self,
        stores: Stores,
        replays: Replays,
        submitter: Submitter,
        benchmarker: Benchmarker,
        machine: Machine,
        clock: Callable[[], float],
    ) -> None:
        self._captures, self._trees, self._replays = stores.captures, stores.trees, replays
        self._submitter, self._benchmarker = submitter, benchmarker
        self._machine, self._clock = machine, clock

    async def run(self, again: Again, notice: Notice) -> Replay:
        """Every node in turn, each on record before the next; one that cannot be run stops no
        other, and says why.

        Raises:
            NotIsolated, StoreUnavailable, DeviceUnwell
        """
        machine = await self._machine.trusted()
        here = _here(machine)
        begun = None
        if not again.fresh:
            begun = await self._replays.unfinished(here, attempts=again.attempts)
        begun = begun or await self._replays.begin(here, attempts=again.attempts, at=self._clock())
        subjects = await self._subjects(attempts=again.attempts)
        rows = []
        for number, subject in enumerate(subjects):
            step = partial(_told, notice, subject, number, len(subjects))
            row = begun.rows.get(subject.id)
            if row is None:
                row = await self._row(subject, machine, step)
                await self._replays.file(begun.id, row)
            rows.append(row)
        resumed = sum(row.id in begun.rows for row in rows)
        replay = Replay(
            id=begun.id, here=here, started_at=begun.started_at, rows=tuple(rows), resumed=resumed
        )
        await self._replays.finish(begun.id, self._clock())
        return replay

    async def _subjects(self, *, attempts: bool) -> list[_Subject]:
        found: list[Node | Attempt] = [*await self._trees.every_node()]
        if attempts:
            found += await self._trees.every_attempt()
        variants = {v: await self._captures.variant(v) for v in {one.variant_id for one in found}}
        return [
            _Subject(
                id=one.id,
                variant=variants[one.variant_id],
                digest=one.source_digest,
                verdict=one.verdict,
                timing=one.timing if isinstance(one, Node) else None,
            )
            for one in found
            if one.source_digest is not None and one.verdict is not None
        ]

    async def _row(self, subject: _Subject, machine: Probed, notice: Notice) -> Replayed:
        backend = subject.variant.call.backend
        if backend not in machine.archs:
            return replace(subject.row, why=f"there is no {backend} device here")
        try:
            return await self._judged(subject, machine, notice)
        except (StoreUnavailable, DeviceUnwell):
            raise
        except KernelForgeError as error:
            return replace(subject.row, why=str(error))

    async def _judged(self, subject: _Subject, machine: Probed, notice: Notice) -> Replayed:
        text = await self._trees.text(subject.digest)
        judged = await self._submitter.judged(
            text, subject.variant, subject.tier, machine.archs, notice
        )
        row = replace(subject.row, verdict=judged.verdict)
        if judged.candidate is None or judged.verdict.status != Status.VALID:
            return row
        try:
            timed = await self._benchmarker.timed(
                subject.variant, judged.candidate, subject.attempt, notice
            )
        except (StoreUnavailable, DeviceUnwell):
            raise
        except KernelForgeError as error:
            return replace(row, why=str(error))
        return replace(row, verdict=timed.verdict or row.verdict, now=timed.timing)


def _told(notice: Notice, subject: _Subject, done: int, total: int, step: Progress) -> None:
    """A step of one subject, as a step of the whole."""
    text = f"{subject.variant.call.name} of {subject.id}: {step.text}"
    notice(Progress(done=done, total=total, text=text))


def _here(machine: Probed) -> Here:
    return Here(
        devices={device.backend: device.name for device in machine.devices if device.usable},
        archs=dict(machine.archs),
        torch=machine.torch_version,
        kernelforge=__version__,
    )
