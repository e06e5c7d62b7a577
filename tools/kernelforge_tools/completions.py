"""Ids that a person may mean, while they are typed into a prompt or an address."""

from mcp.types import Completion

from kernelforge_engine.engine import Engine

MOST = 100  # what the protocol lets a completion hold


async def completed(engine: Engine, argument: str, begun: str) -> Completion:
    """The ids of the newest capture that begin with what was typed."""
    captures = await engine.captures()
    if not captures:
        return Completion(values=[])
    cards = await engine.cards(captures[0].id)
    variants = [variant for card in cards for variant in card.variants]
    ids: list[str] = []
    if argument == "card_id":
        ids = [card.id for card in cards]
    elif argument == "variant_id":
        ids = [variant.id for variant in variants]
    elif argument == "node_id":
        ids = [n.id for v in variants if v.target for n in await engine.tree(v.id)]
    elif argument == "attempt_id":
        ids = [a.id for v in variants if v.target for a in await engine.attempts(v.id)]
    found = [name for name in dict.fromkeys(ids) if name.startswith(begun)]
    return Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST)
