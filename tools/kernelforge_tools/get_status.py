"""The tool that says what the server works on and with."""

from mcp.server.mcpserver import Context

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.records import Json
from kernelforge_tools.answer import Answer, View, call


class StatusView(View):
    """The state of the project and the devices kernels can be written for."""

    version: str
    project: str
    torch_version: str
    devices: list[dict[str, Json]]
    captures: int
    variants: int
    nodes: int
    attempts: int
    active_leases: int
    running_jobs: int


async def get_status(ctx: Context[Engine]) -> Answer[StatusView]:
    """Say which devices kernels can be written for, and what the project holds so far.

    Call it first in an unknown environment: a device that is not usable says why.
    """
    status = await ctx.request_context.lifespan_context.status()
    usable = ", ".join(d.name for d in status.devices if d.usable) or "no device"
    return Answer(
        status="ok",
        summary=f"{usable} usable; {status.captures} captures, {status.nodes} nodes.",
        data=StatusView.model_validate(codec.dump(status)),
        next=[
            call("list_cards") if status.captures else call("capture_model", entry="FILE.py"),
        ],
    )
