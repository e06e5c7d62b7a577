"""The tool that ranks operators."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import OptimizeRow
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.views import CardRow, rounded
from kernelforge_tools.wording import counted


class RankedCard(CardRow):
    """A card with the best that was found for it so far."""

    best_speedup: float | None = None
    best_node_id: str | None = None


class CardList(View):
    """Cards by share of run time."""

    capture_id: str
    cards: list[RankedCard]
    total: int


async def list_cards(
    ctx: Context[Engine],
    capture_id: Annotated[str | None, Field(description="default: the newest capture")] = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 12,
    offset: Annotated[int, Field(ge=0)] = 0,
) -> Answer[CardList]:
    """List the operators of a capture, the ones that took the most run time first.

    `share` is the operator's part of the time of all operators; `headroom` is eager time over the
    least time its memory traffic and arithmetic need. Work where share is large and headroom well
    above 1. `targets` are the variants a kernel can be written for; a card without targets cannot
    be made faster here. `best_speedup` is what was reached so far.
    """
    engine = ctx.request_context.lifespan_context
    capture = await engine.capture_of(capture_id)
    cards = await engine.cards(capture.id)
    best = _best_by_variant((await engine.report(capture.id)).rows)
    shown = [_ranked(CardRow.of(card), best) for card in cards[offset : offset + limit]]
    return Answer(
        status="ok",
        summary=_summary(capture.id, offset, len(shown), len(cards)),
        data=CardList(capture_id=capture.id, cards=shown, total=len(cards)),
        next=_next(shown, capture.id, offset + limit, limit, len(cards)),
    )


def _summary(capture_id: str, offset: int, shown: int, total: int) -> str:
    if not shown:
        return f"{capture_id} has {counted(total, 'card')}; none from offset {offset} on."
    return f"Cards {offset + 1} to {offset + shown} of {total} in {capture_id}."


def _best_by_variant(rows: tuple[OptimizeRow, ...]) -> dict[str, OptimizeRow]:
    return {row.variant_id: row for row in rows if row.speedup is not None}


def _ranked(card: CardRow, best: dict[str, OptimizeRow]) -> RankedCard:
    found = [best[variant] for variant in card.targets if variant in best]
    top = max(found, key=lambda row: row.speedup or 0.0, default=None)
    return RankedCard(
        **card.model_dump(),
        best_speedup=rounded(top.speedup) if top and top.speedup else None,
        best_node_id=top.node_id if top else None,
    )


def _next(
    shown: list[RankedCard], capture_id: str, following: int, limit: int, total: int
) -> list[str]:
    calls = [call("get_card", card_id=card.id) for card in shown if card.targets][:1]
    if following < total:
        calls.append(call("list_cards", capture_id=capture_id, offset=following, limit=limit))
    return calls
