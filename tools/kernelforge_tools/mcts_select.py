"""The tool that chooses what to revise."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.search.lineage import Step
from kernelforge_engine.search.policy import DEFAULT, PolicyName
from kernelforge_engine.selecting import REPAIRS, TOLD, Selection
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.caller import call_key, caller
from kernelforge_tools.views import AttemptRow, NodeRow
from kernelforge_tools.wording import brief, counted, rounded

MAX_SOURCE_CHARS = 10_000
MAX_REPAIRS = 20
OWN = "Kernels that were accepted before are among its starting points."


class StepRow(View):
    """A node and what its idea gave: `speedup` over eager, `gain` over the node it revises, and
    the gain over it of the best of the `below` nodes made from it."""

    id: str
    idea: str | None = None
    outcome: str | None = None
    speedup: float | None = None
    gain: float | None = None
    below: int | None = None
    best_below: float | None = None

    @classmethod
    def of(cls, step: Step) -> "StepRow":
        """The row of a step."""
        return cls(
            id=step.node_id,
            idea=brief(step.idea),
            outcome=step.outcome,
            speedup=None if step.speedup is None else rounded(step.speedup),
            gain=None if step.gain is None else rounded(step.gain),
            below=step.below or None,
            best_below=None if step.best_below is None else rounded(step.best_below),
        )


class SelectionView(View):
    """A parent under a lease, what led to it, and what was tried below it."""

    lease_id: str
    variant_id: str
    parent: NodeRow
    source: str | None = None
    repairs: int
    """How often a proposal that failed may be mended under the lease."""
    line: list[StepRow] | None = None
    """What led to the parent, the first version first."""
    tried: list[StepRow]
    failed: list[AttemptRow]
    best: StepRow | None = None
    """The fastest node of the tree, where the parent is another."""
    rivals: list[str] | None = None
    """Leases under which others revise the same parent now."""
    left_out: str | None = None


async def mcts_select(
    ctx: Context[Engine],
    variant_id: str,
    policy: PolicyName = DEFAULT,
    max_repairs: Annotated[int, Field(ge=0, le=MAX_REPAIRS)] = REPAIRS,
) -> Answer[SelectionView]:
    """Choose the node of a variant's revision tree to revise next, and lease it.

    Returns the parent with its source and timing, the ideas that led to it, what was tried below it
    (do not repeat it) and recent failures with the log line that says most. A parent without source
    is eager itself: write a first version, or start from get_card(sections=["starting_points"]).
    Revise the parent with one idea and submit it under the lease with compile_and_validate. The
    lease ends with a valid proposal, when a failed one was mended `repairs` times, or unused after
    half an hour.
    """
    engine = ctx.request_context.lifespan_context
    selection = await engine.select(
        variant_id,
        holder=caller(ctx),
        policy=policy,
        max_repairs=max_repairs,
        call_key=call_key(ctx),
    )
    own = [] if selection.source else await _own(engine, variant_id)
    submit = call(
        "compile_and_validate",
        variant_id=variant_id,
        lease_id=selection.lease.id,
        source="...",
        note="the idea in one line",
    )
    return Answer(
        status="ok",
        summary=_summary(selection) + (f" {OWN}" if own else ""),
        data=_view(selection),
        next=[*own, submit],
    )


async def _own(engine: Engine, variant_id: str) -> list[str]:
    """How to see what the user's own library has for a variant, where it has anything."""
    if not any(offer.origin for offer in await engine.offers(variant_id)):
        return []
    card_id = (await engine.variant(variant_id)).card_id
    sections = ["starting_points"]
    return [call("get_card", card_id=card_id, variant_id=variant_id, sections=sections)]


def _view(selection: Selection) -> SelectionView:
    return SelectionView(
        lease_id=selection.lease.id,
        variant_id=selection.lease.variant_id,
        parent=NodeRow.of(selection.parent),
        source=_shown(selection),
        repairs=selection.lease.repairs_left,
        line=[StepRow.of(step) for step in selection.line] or None,
        tried=[StepRow.of(step) for step in selection.tried],
        failed=[AttemptRow.of(attempt) for attempt in selection.failed[:TOLD]],
        best=StepRow.of(selection.best) if selection.best else None,
        rivals=[f"{lease.id}: {lease.holder}" for lease in selection.rivals] or None,
        left_out=_left_out(selection),
    )


def _summary(selection: Selection) -> str:
    parent = selection.parent
    tried = f"{selection.children} tried, {len(selection.failed)} failed below it"
    return (
        f"{selection.lease.id} leases {parent.id}, {_task(selection)}; {tried}."
        f"{_rivalry(selection)}"
    )


def _task(selection: Selection) -> str:
    if selection.source is not None:
        return "revise its source"
    if not selection.children:
        return "eager itself: write a first kernel"
    return "eager itself: write another kernel from the start, unlike those that were tried"


def _rivalry(selection: Selection) -> str:
    """That others revise the same node now, as a further sentence."""
    if not selection.rivals:
        return ""
    others = counted(len(selection.rivals), "other lease")
    are = "is" if len(selection.rivals) == 1 else "are"
    return f" {others} of it {are} open: choose an idea that another agent would not."


def _left_out(selection: Selection) -> str | None:
    totals = {
        "line": selection.depth,
        "tried": selection.children,
        "failed": len(selection.failed),
    }
    parts = [f"{name}: showing {TOLD} of {n}" for name, n in totals.items() if n > TOLD]
    rest = call("get_tree", variant_id=selection.lease.variant_id)
    return "; ".join([*parts, f"{rest} for more"]) if parts else None


def _shown(selection: Selection) -> str | None:
    if selection.source is None or len(selection.source) <= MAX_SOURCE_CHARS:
        return selection.source
    rest = call("get_node", node_id=selection.parent.id, sections=["source"])
    return f"{selection.source[:MAX_SOURCE_CHARS]}\n(cut; all of it: {rest})"
