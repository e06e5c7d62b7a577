"""The tool that says what the server works on and with."""

from mcp.server.mcpserver import Context

from kernelforge_engine import codec
from kernelforge_engine.calls import Json
from kernelforge_engine.engine import Engine
from kernelforge_engine.records import Capture
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.load import busy_now
from kernelforge_tools.spending import ArmRow, SpendingView, arm_rows, spending
from kernelforge_tools.wording import counted, left_out, rounded

SHOWN = 4
MAX_MODEL_CHARS = 80


class CaptureRow(View):
    """A capture of the project."""

    id: str
    model: str
    device: str
    calls: int
    wall_us: float | None = None
    bound: str | None = None


class StatusView(View):
    """The state of the project."""

    version: str
    project: str
    torch_version: str
    devices: list[dict[str, Json]]
    isolation: str
    open: list[str]
    captures: int
    newest_captures: list[CaptureRow]
    left_out: str | None = None
    variants: int
    nodes: int
    attempts: int
    active_leases: int
    running_jobs: int
    busy: str | None = None
    """Set when other work keeps the processors busy."""
    usage: SpendingView | None = None
    """What the project has cost so far, where anything is on record."""
    arms: list[ArmRow] | None = None


async def get_status(ctx: Context[Engine]) -> Answer[StatusView]:
    """Say which devices kernels can be written for, which captures there are, and what was spent.

    Call it first in an unknown environment: a device that is not usable says why.
    """
    return await status_answer(ctx.request_context.lifespan_context)


async def status_answer(engine: Engine) -> Answer[StatusView]:
    """The same, for whoever has an engine and no request."""
    status = await engine.status()
    captures = (await engine.captures())[:SHOWN]
    rows = [_row(capture) for capture in captures]
    usable = ", ".join(d.name for d in status.devices if d.usable) or "no device"
    busy = busy_now() if not status.running_jobs else None
    return Answer(
        status="ok",
        summary=f"{usable} usable; {counted(status.captures, 'capture')}, "
        f"{counted(status.nodes, 'node')}.{f' {busy}' if busy else ''}",
        data=StatusView(
            **codec.dump(status),
            newest_captures=rows,
            busy=busy,
            left_out=left_out(len(rows), status.captures, "list_cards(capture_id=...)"),
            usage=await spending(engine.accounts),
            arms=await arm_rows(engine.accounts) or None,
        ),
        next=[
            call("list_cards") if status.captures else call("capture_model", model="FILE.py"),
        ],
    )


def _row(capture: Capture) -> CaptureRow:
    return CaptureRow(
        id=capture.id,
        model=capture.model[-MAX_MODEL_CHARS:],
        device=capture.device,
        calls=capture.calls,
        wall_us=None if capture.wall_us is None else rounded(capture.wall_us),
        bound=capture.believed_bound,
    )
