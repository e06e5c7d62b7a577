"""The tool that looks into a cast."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_tools.answer import Answer, call
from kernelforge_tools.cast_views import CastView
from kernelforge_tools.entries import absolute
from kernelforge_tools.wording import counted


async def inspect_cast(
    ctx: Context[Engine], path: Annotated[str, Field(description="a .cast file")]
) -> Answer[CastView]:
    """Say what a cast holds: its kernels with the evidence of each, and how to load it.

    Its structure and every hash are checked; nothing of it is run. A cast that is damaged or says
    what it may not is refused with the reason.
    """
    cast = await ctx.request_context.lifespan_context.inspect_cast(absolute(path))
    kernels = counted(len(cast.entries), "kernel")
    places = ", ".join(cast.archs) or "the CPU"
    return Answer(
        status="ok",
        summary=f"{cast.path}: {kernels} for {places}; every hash is right.",
        data=CastView.of(cast),
        next=[call("measure_model", path=cast.path)],
    )
