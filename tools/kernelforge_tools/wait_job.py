"""The tool that waits for slow work."""

from typing import Any

from mcp.server.mcpserver import Context

from kernelforge_engine.engine import Engine
from kernelforge_tools.answer import Answer
from kernelforge_tools.slow_tools import taken_up
from kernelforge_tools.waiting import DEFAULT_WAIT_S, Wait, orphaned, told, watched


async def wait_job(
    ctx: Context[Engine], job_id: str, wait_s: Wait = DEFAULT_WAIT_S
) -> Answer[dict[str, Any]]:
    """Wait for a job that a slow tool left running, and return what that tool would have.

    Status `running` means that it still goes on: call this again. Jobs survive a cancelled or
    timed-out call, and are taken up after their server ended.
    """
    engine = ctx.request_context.lifespan_context
    job = await watched(ctx, await engine.jobs.get(job_id), wait_s)
    if orphaned(engine, job) and job.arguments is not None:
        return await taken_up(ctx, job, wait_s)
    return await told(ctx, job)
