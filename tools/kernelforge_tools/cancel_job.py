"""The tool that ends slow work."""

from mcp.server.mcpserver import Context

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import JobState
from kernelforge_tools.answer import Answer, View, call


class JobView(View):
    """A job that goes on no more."""

    job_id: str
    kind: str
    state: str


async def cancel_job(ctx: Context[Engine], job_id: str) -> Answer[JobView]:
    """End a job and the processes that work on it, which frees the device for others.

    What it had stored stays: captures, nodes, attempts. A job that has ended already stays as it
    ended. The tool that started it may be called again and begins anew.
    """
    job = await ctx.request_context.lifespan_context.jobs.cancel(job_id)
    cancelled = job.state == JobState.CANCELLED
    return Answer(
        status=job.state,
        summary=f"Job {job.id} ({job.kind}) "
        + ("was cancelled." if cancelled else f"had ended before: {job.state}."),
        data=JobView(job_id=job.id, kind=job.kind, state=job.state),
        next=[call("get_status") if cancelled else call("wait_job", job_id=job.id)],
    )
