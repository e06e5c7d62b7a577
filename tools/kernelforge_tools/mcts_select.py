"""The tool that chooses what to revise."""

from typing import Annotated, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Selection
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.caller import caller
from kernelforge_tools.views import AttemptRow, NodeRow
from kernelforge_tools.wording import counted

MAX_SOURCE_CHARS = 10_000
SHOWN = 6


class SelectionView(View):
    """A parent under a lease, and what was tried below it."""

    lease_id: str
    variant_id: str
    parent: NodeRow
    source: str | None = None
    tried: list[NodeRow]
    failed: list[AttemptRow]
    rivals: list[str] | None = None
    left_out: str | None = None


async def mcts_select(
    ctx: Context[Engine],
    variant_id: str,
    policy: Annotated[
        Literal["log", "paper"],
        Field(description="log (scale-free) or paper (the published rule, in milliseconds)"),
    ] = "log",
) -> Answer[SelectionView]:
    """Choose the node of a variant's revision tree to revise next, and lease it.

    Returns the parent with its source and timing, the children already tried (do not repeat them)
    and the recent failures with the log line that says most (avoid them). A parent without source
    is eager itself: write a first version, or start from get_card(sections=["starting_points"]).
    Revise the parent with one idea and submit it under the lease with compile_and_validate. The
    lease serves until a proposal under it is valid, so a failed one can be mended; unused, it
    expires after half an hour.
    """
    engine = ctx.request_context.lifespan_context
    selection = await engine.select(variant_id, holder=caller(ctx), policy=policy)
    return Answer(
        status="ok",
        summary=_summary(selection),
        data=SelectionView(
            lease_id=selection.lease.id,
            variant_id=variant_id,
            parent=NodeRow.of(selection.parent),
            source=_shown(selection),
            tried=[NodeRow.of(n) for n in selection.children[-SHOWN:]],
            failed=[AttemptRow.of(a) for a in selection.failed[:SHOWN]],
            rivals=[f"{x.id}: {x.holder}" for x in selection.rivals] or None,
            left_out=_left_out(selection),
        ),
        next=[
            call(
                "compile_and_validate",
                variant_id=variant_id,
                lease_id=selection.lease.id,
                source="...",
                note="the idea in one line",
            )
        ],
    )


def _summary(selection: Selection) -> str:
    parent = selection.parent
    what = "eager itself: write a first kernel" if selection.source is None else "revise its source"
    tried = f"{len(selection.children)} tried, {len(selection.failed)} failed below it"
    return f"{selection.lease.id} leases {parent.id}, {what}; {tried}.{_rivalry(selection)}"


def _rivalry(selection: Selection) -> str:
    """That others revise the same node now, as a further sentence."""
    if not selection.rivals:
        return ""
    others = counted(len(selection.rivals), "other lease")
    are = "is" if len(selection.rivals) == 1 else "are"
    return f" {others} of it {are} open: choose an idea that another agent would not."


def _left_out(selection: Selection) -> str | None:
    listed = (("tried", len(selection.children)), ("failed", len(selection.failed)))
    parts = [f"{name}: showing {SHOWN} of {n}" for name, n in listed if n > SHOWN]
    rest = 'get_card(card_id=..., variant_id=..., sections=["tree"]) for more'
    return "; ".join([*parts, rest]) if parts else None


def _shown(selection: Selection) -> str | None:
    if selection.source is None or len(selection.source) <= MAX_SOURCE_CHARS:
        return selection.source
    rest = call("get_node", node_id=selection.parent.id, sections=["source"])
    return f"{selection.source[:MAX_SOURCE_CHARS]}\n(cut; all of it: {rest})"
