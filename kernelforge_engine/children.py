"""The one door between the async engine and its blocking children."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from kernelforge_engine import codec
from kernelforge_engine.errors import ChildDied, ChildRefused, DeviceUnwell
from kernelforge_engine.exchanges import Notice, Progress
from kernelforge_engine.pool.child import Child
from kernelforge_engine.pool.orders import (
    Captured,
    CaptureOrder,
    CaptureReply,
    Judged,
    JudgeOrder,
    JudgeReply,
    Measured,
    MeasureOrder,
    MeasureReply,
    Probed,
    ProbeOrder,
    Profiled,
    ProfileOrder,
    Report,
    Timed,
    TimeOrder,
)
from kernelforge_engine.pool.protocol import (
    Build,
    BuilderReply,
    BuildRefused,
    Built,
    Isolate,
    Isolated,
    Raised,
)
from kernelforge_engine.pool.turns import turn
from kernelforge_engine.records import Variant

WITNESS_SECONDS = 60.0
BUILD_SECONDS = 180.0
JUDGE_SECONDS = 900.0
TIME_SECONDS = 3600.0  # a win of a call that takes seconds is measured twice
PROFILE_SECONDS = 900.0
MODEL_SECONDS = 3600.0
BUILDERS = 2
CPU = "cpu"

Answer = TypeVar("Answer")


class Children:
    """Starts, asks and ends every child of one engine.

    The Judge answers one order at a time. A GPU is lent to one child at a time, whichever engine of
    this user asks and whatever for: a capture, a verdict, a timing or a measurement. On the cpu
    that goes for what compares times. Builds run beside each other and never wait for a device,
    except that nothing is built while the cpu is timed: a compiler would take its cores. Children
    are started in the thread of the event loop, because they die with the thread that started them,
    and waited for in others.
    """

    def __init__(self, environment: Mapping[str, str], cache: Path) -> None:
        self._environment, self._cache = dict(environment), cache
        self._judge: Child | None = None
        self._next_builder: Child | None = None
        self._imported: tuple[str, int] | None = None
        self._judging = anyio.Lock()
        self._building = anyio.CapacityLimiter(BUILDERS)
        self._quieting = anyio.Lock()

    def close(self) -> None:
        """End what waits for orders."""
        self._end_judge()
        if self._next_builder is not None:
            self._next_builder.kill()
            self._next_builder = None

    def _end_judge(self) -> None:
        if self._judge is not None:
            self._judge.kill()
            self._judge = None

    async def build(self, order: Build) -> Built | BuildRefused:
        """Compile a candidate in a disposable Builder.

        Raises:
            NoCompiler: this machine has none for the backend.
            NotWritten: there is no room for what it made.
            ChildDied, ChildTimedOut: the Builder failed twice.
        """
        async with self._building:
            reply = await self._twice(
                self._builder,
                "compile a candidate",
                order,
                BuilderReply,
                BUILD_SECONDS,
            )
        if isinstance(reply, Raised):
            raise reply.error()
        answer: Built | BuildRefused = reply
        return answer

    async def capture(self, order: CaptureOrder, notice: Notice) -> Captured:
        """Record a model in a child of its own."""
        task = f"capture {order.model.model}"
        async with self.turn_on_gpu(order.model.device, notice):
            child = self._disposable("capture", "kernelforge_engine.worker.capture")
            reply = await _ask(child, task, order, CaptureReply, MODEL_SECONDS, notice)
        return _answer(Captured, reply)

    async def measure(self, order: MeasureOrder, notice: Notice) -> Measured:
        """Compare a whole model with and without a cast in a child of its own."""
        task = f"measure {order.model.model}"
        device = order.model.device
        async with self.turn(device, notice), self._without_builds(device):
            child = self._disposable("measurement", "kernelforge_engine.worker.measuring")
            reply = await _ask(child, task, order, MeasureReply, MODEL_SECONDS, notice)
        return _answer(Measured, reply)

    async def isolation(self) -> Isolated:
        """What a candidate can do on this machine, tried in a child of its own."""
        start = partial(self._disposable, "witness", "kernelforge_engine.runner.witness")
        task = "try the isolation"
        reply: Isolated = await self._twice(start, task, Isolate(), Isolated, WITNESS_SECONDS)
        return reply

    async def probe(self) -> Probed:
        """Which devices can be used."""
        return _answer(Probed, await self._ask_judge("probe devices", ProbeOrder()))

    async def judge(self, order: JudgeOrder) -> Judged:
        """The verdict on a built candidate; whoever asks holds its turn on a GPU."""
        return _answer(Judged, await self._ask_judge("judge a candidate", order, order.variant))

    @asynccontextmanager
    async def turn(self, device: str, notice: Notice) -> AsyncIterator[None]:
        """While this is held, no other timing of this user runs on the device: cpu, cuda or
        cuda:N."""
        kind, _, number = device.partition(":")
        visible = self._environment.get("CUDA_VISIBLE_DEVICES", "").split(",")
        if kind == "cuda":
            place = int(number or 0)
            device = f"cuda-{visible[place] if visible[place:] and visible[0] else place}"

        def waiting() -> None:
            notice(Progress(done=0, total=1, text="waiting for the device"))

        async with turn(self._cache, device, waiting):
            yield

    @asynccontextmanager
    async def turn_on_gpu(self, device: str, notice: Notice) -> AsyncIterator[None]:
        """The turn of a GPU, for what compares no times: on the cpu that waits for nobody."""
        async with nullcontext() if device == CPU else self.turn(device, notice):
            yield

    @asynccontextmanager
    async def _without_builds(self, device: str) -> AsyncIterator[None]:
        """On the cpu, wait for the builds that run; others wait until this ends. A build never
        waits for a verdict."""
        if device != CPU:
            yield
            return
        async with self._quieting:
            held = [object() for _ in range(BUILDERS)]
            try:
                for borrower in held:
                    await self._building.acquire_on_behalf_of(borrower)
                yield
            finally:
                for borrower in held:
                    with suppress(RuntimeError):  # it was given up before this one was lent
                        self._building.release_on_behalf_of(borrower)

    async def time(self, order: TimeOrder) -> Timed:
        """The timing of a valid candidate; whoever asks holds the device's turn."""
        async with self._judging, self._without_builds(order.variant.call.backend):
            reply = await self._asked("time a candidate", order, order.variant, TIME_SECONDS)
        return _answer(Timed, reply)

    async def profile(self, order: ProfileOrder) -> Profiled:
        """The profile of a valid candidate; whoever asks holds its turn on a GPU."""
        async with self._judging:
            task = "profile a candidate"
            reply = await self._asked(task, order, order.variant, PROFILE_SECONDS)
        return _answer(Profiled, reply)

    async def _ask_judge(self, task: str, order: object, variant: Variant | None = None) -> Any:
        async with self._judging:
            return await self._asked(task, order, variant, JUDGE_SECONDS)

    async def _asked(
        self, task: str, order: object, variant: Variant | None, seconds: float
    ) -> Any:
        self._renew(variant.requires if variant else None)
        reply = await self._twice(self._living_judge, task, order, JudgeReply, seconds)
        if isinstance(reply, Raised) and reply.name == DeviceUnwell.__name__:
            self._end_judge()  # its own context may be what does not work any more
        return reply

    def _renew(self, requires: str | None) -> None:
        """End a Judge that imported other operators of a user's, or these before their file was
        changed: a process can register an operator once."""
        if requires is None:
            return
        file = Path(requires)
        stamp = (requires, file.stat().st_mtime_ns if file.is_file() else 0)
        if self._imported not in (None, stamp):
            self._end_judge()
        self._imported = stamp

    def _living_judge(self) -> Child:
        if self._judge is None or not self._judge.alive:
            self._end_judge()
            self._judge = Child(
                "Judge", "kernelforge_engine.worker.judge", environment=self._environment
            )
        return self._judge

    def _builder(self) -> Child:
        """A Builder that was started while the one before compiled, if it still lives."""
        waiting = self._next_builder
        self._next_builder = self._disposable("Builder", "kernelforge_engine.builder")
        if waiting is not None and waiting.alive:
            return waiting
        if waiting is not None:
            waiting.kill()
        return self._disposable("Builder", "kernelforge_engine.builder")

    def _disposable(self, role: str, module: str) -> Child:
        return Child(role, module, environment=self._environment)

    async def _twice(
        self, start: Callable[[], Child], task: str, order: object, reply: Any, seconds: float
    ) -> Any:
        """Ask; if the child is gone, ask a fresh one once more: nothing was decided yet."""
        try:
            return await _ask(start(), task, order, reply, seconds)
        except ChildDied:
            return await _ask(start(), task, order, reply, seconds)


async def _ask(
    child: Child,
    task: str,
    order: object,
    reply: Any,
    seconds: float,
    notice: Notice | None = None,
) -> Any:
    def reported(frame: bytes) -> bool:
        if b'"kind":"report"' not in frame:
            return False
        report = codec.loads(Report, frame)
        if notice:
            notice(Progress(done=report.done, total=report.total, text=report.text))
        return True

    living = child.role == "Judge"
    try:
        answer = await to_thread.run_sync(
            partial(child.request, task, order, reply, seconds, reported), abandon_on_cancel=True
        )
    except BaseException:
        child.kill()
        raise
    if not living:
        child.kill()
    return answer


def _answer(kind: type[Answer], reply: Any) -> Answer:
    if isinstance(reply, Raised):
        raise reply.error()
    if not isinstance(reply, kind):
        raise ChildRefused(
            role="child", task=f"answer with {kind.__name__}", error=type(reply).__name__
        )
    return reply
