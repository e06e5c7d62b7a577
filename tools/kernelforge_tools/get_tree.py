"""The tool that shows what was tried for a variant."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.records import Node, Outcome
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.views import AttemptRow
from kernelforge_tools.wording import brief, counted, rounded

LIMIT = 8
FAILURES = 2


class TreeRow(View):
    """A node below its parent; speedup is eager over candidate."""

    id: str
    depth: int
    parent_id: str | None = None
    outcome: str | None = None
    speedup: float | None = None
    visits: int
    label: str
    note: str | None = None


class TreeView(View):
    """Nodes depth first, the fastest child first, and the latest proposals that failed."""

    variant_id: str
    nodes: list[TreeRow]
    total: int
    best_node_id: str | None = None
    failed: dict[str, int]
    failures: list[AttemptRow]


async def get_tree(
    ctx: Context[Engine],
    variant_id: str,
    limit: Annotated[int, Field(ge=1, le=100)] = LIMIT,
    offset: Annotated[int, Field(ge=0)] = 0,
) -> Answer[TreeView]:
    """Show the revision tree of a variant: which node was made from which, and what each gave.

    `failed` counts the proposals that became no node by status, `failures` are the latest of them.
    Read it before a new idea, to see what was tried; get_node shows one of them in full.
    """
    engine = ctx.request_context.lifespan_context
    variant = await engine.variant(variant_id)
    nodes, attempts = await engine.tree(variant.id), await engine.attempts(variant.id)
    best = _best(nodes)
    shown = list(_rows(nodes))[offset : offset + limit]
    more = offset + limit < len(nodes)
    again = call("get_tree", variant_id=variant.id, limit=limit, offset=offset + limit)
    return Answer(
        status="ok",
        summary=_summary(variant.id, nodes, len(attempts), best),
        data=TreeView(
            variant_id=variant.id,
            nodes=shown,
            total=len(nodes),
            best_node_id=best.id if best else None,
            failed=dict(Counter(str(a.verdict.status) for a in attempts)),
            failures=[AttemptRow.of(attempt) for attempt in attempts[:FAILURES]],
        ),
        next=[call("mcts_select", variant_id=variant.id), *([again] if more else [])],
    )


def _speedup(node: Node) -> float:
    return node.timing.speedup if node.timing else 0.0


def _best(nodes: Sequence[Node]) -> Node | None:
    faster = [n for n in nodes if n.timing and n.timing.outcome == Outcome.FASTER]
    return max(faster, key=_speedup, default=None)


def _rows(nodes: Sequence[Node]) -> Iterator[TreeRow]:
    children: dict[str | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent_id, []).append(node)
    waiting = [(node, 0) for node in sorted(children.get(None, []), key=_speedup)]
    while waiting:
        node, depth = waiting.pop()
        yield _row(node, depth)
        waiting += [(n, depth + 1) for n in sorted(children.get(node.id, []), key=_speedup)]


def _row(node: Node, depth: int) -> TreeRow:
    timing = node.timing
    return TreeRow(
        id=node.id,
        depth=depth,
        parent_id=node.parent_id,
        outcome=timing.outcome if timing else None,
        speedup=rounded(timing.speedup) if timing else None,
        visits=node.visits,
        label=node.label,
        note=brief(node.note),
    )


def _summary(variant_id: str, nodes: Sequence[Node], failed: int, best: Node | None) -> str:
    found = f"the fastest is {best.id}, {_speedup(best):.4g}x eager" if best else "none is faster"
    made = counted(len(nodes), "node")
    return f"{variant_id} has {made} and {counted(failed, 'failed proposal')}; {found}."
