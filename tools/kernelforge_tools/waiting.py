"""Slow tools: a job in the engine that outlives the request, and a request that only watches it."""

import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field
from starlette.requests import Request

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Job, JobState, Notice, Progress
from kernelforge_tools.answer import Answer, call, plain
from kernelforge_tools.caller import call_key

T = TypeVar("T")

DEFAULT_WAIT_S = 45
MAX_WAIT_S = 300
TICK_S = 1.0
QUIET_S = 10.0 - TICK_S  # a second later the ten would be over

Wait = Annotated[
    int,
    Field(
        ge=0,
        le=MAX_WAIT_S,
        description="seconds until it goes on as a job",
    ),
]


async def slow(
    ctx: Context[Engine],
    kind: str,
    arguments: dict[str, Any],
    wait_s: int,
    work: Callable[[Engine, Notice], Awaitable[Answer[T]]],
) -> Answer[T]:
    """The answer of `work`, or where its job stands after `wait_s`.

    The same tool with the same arguments attaches to the job again; `arguments` are all that the
    tool takes but `wait_s`, so that the job can be taken up from its record.
    """
    engine = ctx.request_context.lifespan_context

    async def run(notice: Notice) -> dict[str, Any]:
        return plain(await work(engine, notice))

    key = call_key(ctx)
    job = await watched(ctx, await engine.jobs.start(kind, arguments, run, key), wait_s)
    if orphaned(engine, job):
        job = await watched(ctx, await engine.jobs.start(kind, arguments, run, key), wait_s)
    return await told(ctx, job)


def orphaned(engine: Engine, job: Job) -> bool:
    """Whether another server ran a job, and ended while this one waited for it."""
    return job.state == JobState.INTERRUPTED and not engine.jobs.ending


async def told(ctx: Context[Engine], job: Job) -> Answer[Any]:
    """What a tool answers for a job as it is.

    Raises:
        ToolError: the job ended without a result.
    """
    if job.state != JobState.RUNNING and not await _is_lost(ctx):
        await ctx.request_context.lifespan_context.jobs.answered(job)
    return settled(job)


async def _is_lost(ctx: Context[Engine]) -> bool:
    """Whether the connection of a request is gone, and with it whatever is answered. The protocol
    of 2025 does not take that for a cancellation, so that its handler runs on."""
    request = ctx.request_context.request
    return isinstance(request, Request) and await request.is_disconnected()


async def watched(ctx: Context[Engine], job: Job, wait_s: int) -> Job:
    """The job when it has ended, or as it is after `wait_s`, with progress sent meanwhile."""
    engine = ctx.request_context.lifespan_context
    board = _Board(job, engine.redact)
    async with anyio.create_task_group() as group:
        group.start_soon(board.report, ctx)
        ended = await engine.jobs.wait(job.id, wait_s, board.post)
        group.cancel_scope.cancel()
    return ended


def settled(job: Job) -> Answer[Any]:
    """What a tool answers for a job.

    Raises:
        ToolError: the job failed or was interrupted.
    """
    match job.state:
        case JobState.DONE:
            return Answer[Any].model_validate(job.result)
        case JobState.RUNNING:
            doing = f": {_words(job.progress)}" if job.progress else ""
            return Answer[Any](
                status="running",
                summary=f"Job {job.id} ({job.kind}) goes on{doing}.",
                next=[call("wait_job", job_id=job.id, wait_s=DEFAULT_WAIT_S)],
                job_id=job.id,
            )
        case JobState.INTERRUPTED:
            raise JobLost(job, f"Job {job.id} ended with the server that ran it.{_taking_up(job)}")
        case JobState.CANCELLED:
            raise JobLost(job, f"Job {job.id} was cancelled.")
    raise JobLost(job, job.error or f"Job {job.id} failed.")


def _taking_up(job: Job) -> str:
    """What takes an interrupted job up, where its record says with which arguments."""
    if job.arguments is None:
        return ""
    return f" Next: {call('wait_job', job_id=job.id)} takes it up again, as the same call would."


class JobLost(ToolError):
    """A job without a result."""

    def __init__(self, job: Job, why: str) -> None:
        super().__init__(why if "Next:" in why else f"{why} Next: call {job.kind} again.")


def _words(progress: Progress) -> str:
    steps = f" ({progress.done}/{progress.total})" if progress.total > 1 else ""
    return f"{progress.text}{steps}"


class _Board:
    """The last notice of a job; posted from any thread, read by the reporting task."""

    def __init__(self, job: Job, redact: Callable[[str], str]) -> None:
        self._job, self._redact = job.id, redact
        self._words = _words(job.progress) if job.progress else job.kind

    def post(self, progress: Progress) -> None:
        self._words = self._redact(_words(progress))

    async def report(self, ctx: Context[Engine]) -> None:
        """Send what changed once a second, and something within ten: clients give up on silence."""
        started = sent_at = time.monotonic()
        sent = ""
        while True:
            await anyio.sleep(TICK_S)
            now = time.monotonic()
            if self._words != sent or now - sent_at >= QUIET_S:
                sent, sent_at = self._words, now
                await ctx.report_progress(round(now - started, 1), None, f"{self._job}: {sent}")
