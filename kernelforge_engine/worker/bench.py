"""The Judge's hold on one Runner: every way it can end becomes a verdict.

A Runner that is ended by a signal that programs do not bring upon themselves was perhaps killed by
somebody else: an administrator, a supervisor, the kernel when memory is short. Nobody can tell the
Judge, so the candidate gets one fresh Runner, and only the second such end is its verdict.
"""

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

import torch

from kernelforge_engine.calls import Call
from kernelforge_engine.errors import ChildRefused
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.pool import frames
from kernelforge_engine.pool.child import Ended
from kernelforge_engine.pool.protocol import (
    Collect,
    Done,
    Failed,
    Load,
    Loaded,
    PrepareTiming,
    Run,
    RunnerReply,
    Sample,
    Sampled,
)
from kernelforge_engine.records import Artifact, Status, Verdict
from kernelforge_engine.worker.arena import POISONS, Arena, Background
from kernelforge_engine.worker.spares import SPARES, Kind
from kernelforge_engine.worker.threads import THREADS
from kernelforge_engine.worker.wallclock import WallClock

LOAD_SECONDS = 60.0
LEAST_RUN_SECONDS = 5.0
RUN_FACTOR = 200.0  # a candidate may be this much slower than eager before it counts as hung


FORGED = (
    "its samples took much longer than its process says: that process cannot be believed any more"
)
FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

T = TypeVar("T")


class CandidateFailed(Exception):
    """The candidate ended its Runner, or the Runner refused it; carries the verdict."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


class RunnerKilled(CandidateFailed):
    """The Runner was ended within its time by a signal that may have come from anyone."""


def once_more(evaluate: Callable[[], T]) -> T:
    """What `evaluate` returns; it is called again after a Runner was killed.

    Raises:
        CandidateFailed: RunnerKilled among them, the second time.
    """
    try:
        return evaluate()
    except RunnerKilled:
        return evaluate()


class Bench:
    """A Runner with a candidate loaded and an arena to run it on."""

    def __init__(
        self,
        call: Call,
        plan: ResolvedPlan,
        eager_us: float,
        environment: Mapping[str, str],
        device: torch.device,
        offset: int,
    ) -> None:
        self.arena = Arena(call, plan, offset)
        self._call, self._plan = call, plan
        self._seconds = LEAST_RUN_SECONDS + RUN_FACTOR * eager_us / 1e6
        self.sandbox = ""
        self._clock = WallClock()
        self._device = device.index or 0
        self._runner = SPARES.take(Kind.of(call, environment, device))

    def __enter__(self) -> "Bench":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        SPARES.retire(self._runner, self.arena.close)

    def load(self, artifact: Artifact) -> None:
        """Load the candidate.

        Raises:
            CandidateFailed: it could not be loaded, or ended the Runner while loading.
        """
        order = Load(
            artifact=artifact,
            plan=self._plan,
            slots=self.arena.slots,
            arena_bytes=self.arena.bytes,
            device=self._device,
            threads=THREADS.given,
            shared=self.arena.shared,
        )
        reply = self._ask(order, LOAD_SECONDS, self.arena.descriptor)
        if isinstance(reply, Loaded):
            self.sandbox = reply.sandbox

    def run(
        self, inputs: Sequence[torch.Tensor], background: Background
    ) -> tuple[torch.Tensor, ...]:
        """One execution on freshly laid inputs; the outputs, after the memory was checked.

        Raises:
            CandidateFailed: it crashed, hung, wrote out of bounds or changed an input.
        """
        self.arena.fill(inputs, background)
        return self._executed(inputs, background)

    def again(
        self,
        inputs: Sequence[torch.Tensor],
        background: Background,
        generator: torch.Generator,
    ) -> tuple[torch.Tensor, ...]:
        """The run before once more: workspaces as it left them, and outputs but for some elements.

        Raises:
            CandidateFailed: as `run`.
        """
        self.arena.scribble(generator)
        self.arena.lay(inputs)
        return self._executed(inputs, background)

    def _executed(
        self, inputs: Sequence[torch.Tensor], background: Background
    ) -> tuple[torch.Tensor, ...]:
        self._ask(Run(), self._seconds)
        damage = self.arena.damage(inputs, background)
        if damage.guard:
            raise CandidateFailed(
                Verdict(
                    status=Status.MEMORY_VIOLATION,
                    reason=f"it wrote outside its buffers: the guard band {damage.guard} changed",
                )
            )
        if damage.mutated:
            raise CandidateFailed(
                Verdict(
                    status=Status.MUTATED_INPUT,
                    reason=f"it changed {damage.mutated}, which this operator does not write",
                )
            )
        return self.arena.outputs(inputs[0].device)

    @property
    def pid(self) -> int:
        """The process of the candidate."""
        return self._runner.pid

    def prepare_timing(
        self, inputs: Sequence[torch.Tensor], sets: int, calls: int, busy_bytes: int = 0
    ) -> None:
        """Make the rotating buffer sets, each with these inputs and poison in all else; what the
        candidate may write is put back before every pass. `busy_bytes` are PrepareTiming's."""
        self.arena.fill(inputs, POISONS[0])
        written = tuple(
            i
            for i, buffer in enumerate(self._plan.buffers)
            if buffer.role != "input" or buffer.index in self._call.mutated
        )
        self._clock.restart(sum(self._plan.buffers[i].bytes for i in written), sets)
        order = PrepareTiming(sets=sets, calls=calls, restored=written, busy_bytes=busy_bytes)
        self._ask(order, LOAD_SECONDS + self._seconds * calls)

    def sample(self, calls: int) -> float:
        """Microseconds per call of one sample.

        Raises:
            CandidateFailed: among others, its times do not explain how long they took.
        """
        asked = time.perf_counter()
        reply = self._ask(Sample(), LEAST_RUN_SECONDS + self._seconds * 2 * calls)
        if not isinstance(reply, Sampled):
            raise CandidateFailed(_odd(reply))
        if self._clock.disbelieves((time.perf_counter() - asked) * 1e6, reply.us, calls):
            raise CandidateFailed(Verdict(status=Status.CRASHED, reason=FORGED))
        return reply.us

    def collect(self, index: int, device: torch.device) -> tuple[torch.Tensor, ...]:
        """The outputs that the samples left in one buffer set."""
        self._ask(Collect(index=index), LOAD_SECONDS)
        return self.arena.outputs(device)

    def _ask(
        self,
        order: Load | Run | PrepareTiming | Sample | Collect,
        seconds: float,
        descriptor: int | None = None,
    ) -> object:
        try:
            reply: Loaded | Done | Sampled | Failed = self._runner.ask(
                order, RunnerReply, seconds, descriptor=descriptor
            )
        except Ended as end:
            raise _ended(end) from end
        except frames.Silent as error:
            raise CandidateFailed(
                Verdict(
                    status=Status.TIMED_OUT,
                    reason=f"it did not finish within {seconds:.0f} s and was stopped",
                )
            ) from error
        if isinstance(reply, Failed):
            if reply.ours:
                raise ChildRefused(role="Runner", task="run a candidate", error=reply.error)
            raise CandidateFailed(_failed(reply))
        return reply


def _ended(end: Ended) -> CandidateFailed:
    if end.killed_by == signal.SIGSYS:
        return CandidateFailed(
            Verdict(
                status=Status.CRASHED,
                reason="it made a system call that is not allowed, such as one that starts a "
                "process or a thread, and was stopped",
                log=end.words,
            )
        )
    killed = end.killed_by in FROM_OUTSIDE
    note = ", twice: it may need more memory than there is" if killed else ""
    verdict = Verdict(
        status=Status.CRASHED,
        reason=f"it ended its process with {end.status}{note}",
        log=end.words,
    )
    return RunnerKilled(verdict) if killed else CandidateFailed(verdict)


def _failed(reply: Failed) -> Verdict:
    if reply.fault:
        return Verdict(
            status=Status.MEMORY_VIOLATION,
            reason=f"the device reported an illegal access: {reply.error}",
        )
    if reply.stage == "state":
        return Verdict(status=Status.KEEPS_STATE, reason=reply.error)
    crashed = reply.stage == "launch" and "LAUNCH_FAILED" in reply.error
    return Verdict(
        status=Status.CRASHED if crashed else Status.LAUNCH_FAILED,
        reason=f"it could not be {'loaded' if reply.stage == 'load' else 'run'}: {reply.error}",
    )


def _odd(reply: object) -> Verdict:
    return Verdict(status=Status.CRASHED, reason=f"its Runner answered {type(reply).__name__}")
