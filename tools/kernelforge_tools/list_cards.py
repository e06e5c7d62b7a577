"""The tool that ranks operators and regions."""

from typing import Annotated, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.records import Card
from kernelforge_engine.search.budget import Budget, limits
from kernelforge_engine.store.trees import Best
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.findings import OVERLAP
from kernelforge_tools.plans import PlanRow
from kernelforge_tools.ranking import Sort, ranked
from kernelforge_tools.views import CardBrief
from kernelforge_tools.wording import counted, rounded

Kind = Literal["all", "operator", "region"]
LIMIT = 8
DEFAULTS = {"sort": "gain", "kind": "all", "limit": LIMIT}


class RankedCard(CardBrief):
    """A card with the best that was found for it so far."""

    best_speedup: float | None = None
    best_node_id: str | None = None


class CardList(View):
    """Cards, best first; with a budget, how to spend it."""

    capture_id: str
    cards: list[RankedCard]
    total: int
    plan: list[PlanRow] | None = None
    note: str | None = None


async def list_cards(  # noqa: PLR0913  what an agent may ask of a list
    ctx: Context[Engine],
    capture_id: Annotated[str | None, Field(description="default: the newest capture")] = None,
    sort: Sort = "gain",
    kind: Kind = "all",
    limit: Annotated[int, Field(ge=1, le=100)] = LIMIT,
    offset: Annotated[int, Field(ge=0)] = 0,
    budget: Annotated[int, Field(ge=0)] = 0,
    budget_each: Annotated[str, Field(description="a number or opt0, opt5, ... opt50")] = "",
) -> Answer[CardList]:
    """List the operators and regions of a capture, those with the most to gain first.

    `share` is the part of all operator time (`wall_share` of the model's own time), `headroom` is
    eager time over the least that memory traffic and arithmetic need, `gain` is share x (1 - 1 /
    headroom). A region runs the operators named `inside` as one target, in `launches` kernels, and
    lies `within` others: shares of regions overlap. `targets` are the first variants a kernel can
    be written for, `families` those that one kernel serves at many sizes; a card with neither
    cannot be made faster here. `best_speedup` was reached so far. With a `budget` of proposals, in
    all or for each target, `plan` says where they go; ask again after a success.
    """
    engine = ctx.request_context.lifespan_context
    capture = await engine.capture_of(capture_id)
    cards = ranked([c for c in await engine.cards(capture.id) if kind in ("all", _kind(c))], sort)
    best = await engine.best(capture.id)
    shown = [_ranked(card, best) for card in cards[offset : offset + limit]]
    spending = limits(budget or None, budget_each or None)
    plan = await engine.planner.plan(capture.id, spending) if spending != Budget() else ()
    asked = {"capture_id": capture.id, "sort": sort, "kind": kind, "limit": limit}
    asked = {name: value for name, value in asked.items() if value != DEFAULTS.get(name)}
    best_of = [call("get_card", card_id=row.id) for row in shown if row.targets or row.families]
    if any(planned.allotment.evaluations for planned in plan):
        best_of = [call("mcts_select", variant_id=plan[0].variant.id)]
    more = [call("list_cards", **asked, offset=offset + limit)] * (offset + limit < len(cards))
    return Answer(
        status="ok",
        summary=_summary(capture.id, offset, len(shown), len(cards)),
        data=CardList(
            capture_id=capture.id,
            cards=shown,
            total=len(cards),
            plan=[PlanRow.of(planned) for planned in plan[:limit]] or None,
            note=OVERLAP if any(row.kind == "region" for row in shown) else None,
        ),
        next=[*best_of[:1], *more],
    )


def _kind(card: Card) -> Kind:
    return "region" if card.is_region else "operator"


def _summary(capture_id: str, offset: int, shown: int, total: int) -> str:
    if not shown:
        return f"{capture_id} has {counted(total, 'card')}; none from offset {offset} on."
    return f"Cards {offset + 1} to {offset + shown} of {total} in {capture_id}."


def _ranked(card: Card, best: dict[str, Best]) -> RankedCard:
    found = [best[variant.id] for variant in card.variants if variant.id in best]
    top = max(found, key=lambda node: node.speedup, default=None)
    return RankedCard(
        **CardBrief.of(card).model_dump(),
        best_speedup=rounded(top.speedup) if top else None,
        best_node_id=top.node_id if top else None,
    )
