"""The tools whose work goes on as a job, which the same call takes up after its server ended."""

from typing import Any

from mcp.server.mcpserver import Context

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Job
from kernelforge_tools.answer import Answer
from kernelforge_tools.benchmark import benchmark
from kernelforge_tools.capture_model import capture_model
from kernelforge_tools.compile_and_validate import compile_and_validate
from kernelforge_tools.export_cast import export_cast
from kernelforge_tools.forge_tool import forge_tool
from kernelforge_tools.measure_model import measure_model
from kernelforge_tools.profile_node import profile_node

SLOW = {
    tool.name: tool
    for tool in (
        forge_tool(capture_model, read_only=False),
        forge_tool(compile_and_validate, read_only=False),
        forge_tool(benchmark, read_only=False),
        forge_tool(profile_node, read_only=False, idempotent=True),
        forge_tool(export_cast, read_only=False, destructive=True, idempotent=True),
        forge_tool(measure_model, read_only=True),
    )
}


async def taken_up(ctx: Context[Engine], job: Job, wait_s: int) -> Answer[Any]:
    """The answer to the call that started an interrupted job, made again."""
    arguments = {**(job.arguments or {}), "wait_s": wait_s}
    answer: Answer[Any] = await SLOW[job.kind].run(arguments, ctx)
    return answer
