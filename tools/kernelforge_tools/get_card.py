"""The tool that shows one operator or region in full."""

from typing import Annotated, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import UsageError
from kernelforge_engine.launch.skeleton import skeleton
from kernelforge_engine.library.catalog import Offer
from kernelforge_engine.planning import stake
from kernelforge_engine.records import Card, Inner, Variant
from kernelforge_engine.search.budget import amdahl_line, not_worth_it
from kernelforge_tools import guide
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.families import FamilyRow, FamilyView
from kernelforge_tools.fitting import fitted
from kernelforge_tools.reference import Reference, reference
from kernelforge_tools.spending import SpendingView, spending
from kernelforge_tools.tensors import HeaderReference, header_reference
from kernelforge_tools.views import AttemptRow, CardBrief, NodeRow, VariantLine, by_time
from kernelforge_tools.wording import left_out, number_text, rounded

SHOWN = 3
MAX_VARIANTS = 40
MAX_NODES = MAX_ATTEMPTS = 10

Section = Literal[
    "format",
    "starting_points",
    "skeleton",
    "reference",
    "inside",
    "tree",
    "all_variants",
    "usage",
]


class StartingPoint(View):
    """A library source that fits the variant; `source` comes with its section."""

    name: str
    origin: str | None = None
    """Of the user's own library: where it was found faster. It is judged anew here."""
    source: str | None = None


class InsideRow(View):
    """An operator inside a region: its calls in one call of the region, and the time of each."""

    operator: str
    calls: int
    us_each: float

    @classmethod
    def of(cls, inner: Inner) -> "InsideRow":
        """The row of an operator."""
        return cls(operator=inner.operator, calls=inner.calls, us_each=rounded(inner.us))


class CardView(View):
    """One operator or region."""

    card: CardBrief
    amdahl: str
    """What the whole model could gain at most by the chosen variant, or why it is not worth it."""
    backend: str
    variants: list[VariantLine]
    families: list[FamilyRow] | None = None
    header: HeaderReference | None = None
    family: FamilyView | None = None
    """Set when the chosen variant is a family: the header shows its dearest member."""
    starting_points: list[StartingPoint] | None = None
    skeleton: str | None = None
    reference: Reference | None = None
    inside: list[InsideRow] | None = None
    nodes: list[NodeRow] | None = None
    attempts: list[AttemptRow] | None = None
    usage: SpendingView | None = None
    format: str | None = None
    left_out: list[str] | None = None


async def get_card(
    ctx: Context[Engine],
    card_id: str,
    variant_id: Annotated[
        str | None,
        Field(description="the variant or family to describe; default: the most to gain"),
    ] = None,
    sections: Annotated[
        tuple[Section, ...],
        Field(
            description="`format`: how to write a candidate; `starting_points`: library sources; "
            "`skeleton`: a candidate that compiles, to be filled in; `reference`: what is computed "
            "and every buffer; `inside`: a region's operators; `tree`: nodes and failures; "
            "`all_variants`: more than the first three; `usage`: what it has cost"
        ),
    ] = (),
) -> Answer[CardView]:
    """Show one operator or region: variants, families, tensors, arguments, eager and floor time.

    `header` lists the buffers (in0, out0, ...) and the numbers a launch header may use for the
    chosen variant. A kernel is written for one variant and judged on it, or for a family and judged
    at many sizes. Ask for sections=["format"] once per session, and for ["skeleton", "reference"]
    or ["starting_points"] before the first candidate.
    """
    engine = ctx.request_context.lifespan_context
    card = await engine.card(card_id)
    chosen = _chosen(card, variant_id)
    offers = await engine.offers(chosen.id) if chosen.target else ()
    view = _outlined(card, chosen, offers, sections)
    if chosen.target:
        view = _detailed(view, chosen, sections)
    if "tree" in sections:
        view = await _with_tree(view, engine, chosen.id)
    if "usage" in sections:
        view = view.model_copy(update={"usage": await spending(engine.accounts, card.id)})
    return Answer(
        status="ok",
        summary=_summary(card, chosen),
        data=fitted(view, SPARE),
        next=[call("mcts_select", variant_id=chosen.id)] if chosen.target else [call("list_cards")],
    )


# Sections that are left out where all do not fit into one answer, the first of them first.
SPARE = ("starting_points", "format", "nodes", "attempts", "reference", "inside", "skeleton")


def _chosen(card: Card, variant_id: str | None) -> Variant:
    if variant_id is None:
        # A family gains what its members gain, so it is no more than equal where one has it all.
        return max(card.variants, key=lambda v: (v.target, round(v.gain, 4), v.share))
    for variant in card.variants:
        if variant.id == variant_id:
            return variant
    known = ", ".join(v.id for v in card.variants[:MAX_VARIANTS])
    why = f"card {card.id} has no variant {variant_id!r}"
    raise UsageError(why=why, step=f"use one of its own: {known}")


def _points(offers: tuple[Offer, ...], *, shown: bool) -> list[StartingPoint] | None:
    """What the library offers; an empty list where it was asked for and has nothing."""
    return [_point(offer, shown) for offer in offers] or ([] if shown else None)


def _outlined(
    card: Card, chosen: Variant, offers: tuple[Offer, ...], sections: tuple[Section, ...]
) -> CardView:
    """The card with its variants, and the format, which belongs to none of them."""
    most = MAX_VARIANTS if "all_variants" in sections else SHOWN
    exact = [v for v in card.variants if v.family is None]
    families = [FamilyRow.of(v, v.family) for v in card.variants if v.family is not None]
    rest = (
        "families stand for the rest" if "all_variants" in sections else 'sections=["all_variants"]'
    )
    cut = [
        _cut(name, most, len(shown), rest)
        for name, shown in (("variants", exact), ("families", families))
    ]
    of_model = stake(card, chosen)
    return CardView(
        card=CardBrief.of(card),
        amdahl=not_worth_it(of_model) or amdahl_line(of_model.share, of_model.headroom),
        backend=chosen.call.backend,
        variants=[VariantLine.of(v) for v in exact[:most]],
        families=families[:most] or None,
        starting_points=_points(offers, shown="starting_points" in sections),
        format=guide.FORMAT if "format" in sections else None,
        left_out=[text for text in cut if text] or None,
    )


def _detailed(view: CardView, chosen: Variant, sections: tuple[Section, ...]) -> CardView:
    """The view with what a candidate for the chosen variant needs."""
    family, full = chosen.family, "all_variants" in sections
    inside = [InsideRow.of(inner) for inner in by_time(chosen.inside)]
    return view.model_copy(
        update={
            "header": header_reference(chosen.id, chosen.call, full="reference" in sections),
            "family": None if family is None else FamilyView.of(family, full=full),
            "skeleton": skeleton(chosen.call) if "skeleton" in sections else None,
            "reference": reference(chosen.call) if "reference" in sections else None,
            "inside": inside if "inside" in sections and inside else None,
        }
    )


async def _with_tree(view: CardView, engine: Engine, variant_id: str) -> CardView:
    nodes = await engine.tree(variant_id)
    attempts = await engine.attempts(variant_id)
    older = "get_node with an older id"
    cut = [
        _cut("nodes", MAX_NODES, len(nodes), older),
        _cut("attempts", MAX_ATTEMPTS, len(attempts), older),
    ]
    return view.model_copy(
        update={
            "nodes": [NodeRow.of(node) for node in nodes[-MAX_NODES:]],
            "attempts": [AttemptRow.of(attempt) for attempt in attempts[:MAX_ATTEMPTS]],
            "left_out": [*(view.left_out or ()), *(text for text in cut if text)] or None,
        }
    )


def _cut(name: str, most: int, total: int, rest: str) -> str | None:
    """What a list of at most `most` says about what it leaves out."""
    text = left_out(min(most, total), total, rest)
    return f"{name}: {text}" if text else None


def _summary(card: Card, chosen: Variant) -> str:
    if not chosen.target:
        return f"{card.operator}: {chosen.id} is not a target: {chosen.reason}."
    what = "is a shape family, on average" if chosen.family else "runs"
    return (
        f"{card.operator} takes {card.share:.1%} of operator time; {chosen.id} {what} "
        f"{number_text(chosen.eager_us)} us eager, floor {number_text(chosen.floor_us)} us."
    )


def _point(offer: Offer, full: bool) -> StartingPoint:
    return StartingPoint(
        name=offer.name, origin=offer.origin or None, source=offer.text if full else None
    )
