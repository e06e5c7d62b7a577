"""The tool that ranks operators and regions."""

from typing import Annotated, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.records import Card
from kernelforge_engine.store.trees import Best
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.findings import OVERLAP
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
    """Cards, best first."""

    capture_id: str
    cards: list[RankedCard]
    total: int
    note: str | None = None


async def list_cards(
    ctx: Context[Engine],
    capture_id: Annotated[str | None, Field(description="default: the newest capture")] = None,
    sort: Sort = "gain",
    kind: Kind = "all",
    limit: Annotated[int, Field(ge=1, le=100)] = LIMIT,
    offset: Annotated[int, Field(ge=0)] = 0,
) -> Answer[CardList]:
    """List the operators and regions of a capture, those with the most to gain first.

    `share` is the part of all operator time (`wall_share` of the model's own time), `headroom` is
    eager time over the least that memory traffic and arithmetic need, `gain` is share x (1 - 1 /
    headroom). A region runs the operators named `inside` as one target, in `launches` kernels, and
    lies `within` others: shares of regions overlap. `targets` are the first variants a kernel can
    be written for, `families` those that one kernel serves at many sizes; a card with neither
    cannot be made faster here. `best_speedup` is what was reached so far.
    """
    engine = ctx.request_context.lifespan_context
    capture = await engine.capture_of(capture_id)
    cards = ranked([c for c in await engine.cards(capture.id) if kind in ("all", _kind(c))], sort)
    best = await engine.best(capture.id)
    shown = [_ranked(card, best) for card in cards[offset : offset + limit]]
    asked = {"capture_id": capture.id, "sort": sort, "kind": kind, "limit": limit}
    asked = {name: value for name, value in asked.items() if value != DEFAULTS.get(name)}
    best_of = [call("get_card", card_id=row.id) for row in shown if row.targets or row.families]
    more = [call("list_cards", **asked, offset=offset + limit)] * (offset + limit < len(cards))
    return Answer(
        status="ok",
        summary=_summary(capture.id, offset, len(shown), len(cards)),
        data=CardList(
            capture_id=capture.id,
            cards=shown,
            total=len(cards),
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
