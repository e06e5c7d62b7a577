"""The tool that shows one operator in full."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import UsageError
from kernelforge_engine.library.catalog import Offer
from kernelforge_engine.records import Card, Variant
from kernelforge_tools import guide
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.tensors import HeaderReference, header_reference
from kernelforge_tools.views import AttemptRow, CardRow, NodeRow, VariantRow
from kernelforge_tools.wording import left_out

SHOWN = 4
MAX_ATTEMPTS = 10

Section = Literal["starting_points", "format", "tree", "all_variants"]


class StartingPoint(View):
    """A library source that fits the variant; `source` comes with its section."""

    name: str
    source: str | None = None


class CardView(View):
    """One operator: its variants, what a header may name, and where to start."""

    card: CardRow
    backend: str
    variants: list[VariantRow]
    left_out: str | None = None
    header: HeaderReference | None = None
    starting_points: list[StartingPoint]
    nodes: list[NodeRow] | None = None
    attempts: list[AttemptRow] | None = None
    attempts_left_out: str | None = None
    format: str | None = None


async def get_card(
    ctx: Context[Engine],
    card_id: str,
    variant_id: Annotated[
        str | None, Field(description="the variant to describe; default: the card's first target")
    ] = None,
    sections: Annotated[
        tuple[Section, ...],
        Field(
            description="`format`: how to write a candidate; `starting_points`: library sources; "
            "`tree`: every node and the recent failures of the variant; "
            "`all_variants`: every variant, not only the first four"
        ),
    ] = (),
) -> Answer[CardView]:
    """Show one operator: variants with tensors, strides, arguments, eager and floor time.

    `header` lists the buffers (in0, out0, ...) and argument names a launch header may use for the
    chosen variant. A kernel is written for one variant and judged on it; strides are part of it.
    Ask for sections=["format"] once per session to learn the candidate format, and for
    sections=["starting_points"] to read library sources that fit and can be revised.
    """
    engine = ctx.request_context.lifespan_context
    card = await engine.card(card_id)
    chosen = _chosen(card, variant_id)
    offers = await engine.offers(chosen.id) if chosen.target else ()
    rows = card.variants if "all_variants" in sections else card.variants[:SHOWN]
    tree = await _tree(engine, chosen.id) if "tree" in sections else {}
    return Answer(
        status="ok",
        summary=_summary(card, chosen),
        data=CardView(
            card=CardRow.of(card),
            backend=chosen.call.backend,
            variants=[VariantRow.of(v) for v in rows],
            left_out=left_out(len(rows), len(card.variants), 'sections=["all_variants"]'),
            header=header_reference(chosen.id, chosen.call) if chosen.target else None,
            starting_points=[_point(o, "starting_points" in sections) for o in offers],
            format=guide.FORMAT if "format" in sections else None,
            **tree,
        ),
        next=[call("mcts_select", variant_id=chosen.id)] if chosen.target else [call("list_cards")],
    )


def _chosen(card: Card, variant_id: str | None) -> Variant:
    if variant_id is None:
        return next((v for v in card.variants if v.target), card.variants[0])
    for variant in card.variants:
        if variant.id == variant_id:
            return variant
    known = ", ".join(v.id for v in card.variants)
    why = f"card {card.id} has no variant {variant_id!r}"
    raise UsageError(why=why, step=f"use one of its own: {known}")


def _summary(card: Card, chosen: Variant) -> str:
    if not chosen.target:
        return f"{card.operator}: {chosen.id} is not a target: {chosen.reason}."
    return (
        f"{card.operator} takes {card.share:.1%} of operator time; {chosen.id} runs "
        f"{chosen.eager_us:.4g} us eager, floor {chosen.floor_us:.4g} us."
    )


async def _tree(engine: Engine, variant_id: str) -> dict[str, Any]:
    nodes = await engine.tree(variant_id)
    attempts = await engine.attempts(variant_id)
    return {
        "nodes": [NodeRow.of(node) for node in nodes],
        "attempts": [AttemptRow.of(attempt) for attempt in attempts[:MAX_ATTEMPTS]],
        "attempts_left_out": left_out(
            min(MAX_ATTEMPTS, len(attempts)), len(attempts), "get_node with an older attempt's id"
        ),
    }


def _point(offer: Offer, full: bool) -> StartingPoint:
    return StartingPoint(name=offer.name, source=offer.text if full else None)
