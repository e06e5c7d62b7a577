"""What the tools and the command line find out alike before they ask the engine for work."""

import os
from pathlib import Path

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import BadOption, UnknownId
from kernelforge_engine.exchanges import Attempt, Proposal
from kernelforge_engine.store.ids import row, unknown
from kernelforge_tools.entries import absolute

SUFFIX = ".cast"
ATTEMPT = "a"


def cast_path(path: str | Path, *, overwrite: bool, replacing: str) -> Path:
    """Where a cast is to be written; `replacing` is how the caller says that it may be replaced.

    Raises:
        BadOption: the name is not one of a cast, or is taken.
    """
    target = absolute(path)
    if target.suffix != SUFFIX:
        raise BadOption(
            field="path",
            value=str(path),
            why=f"the name of a cast ends in {SUFFIX}",
            accepted=f"{target.stem or 'model'}{SUFFIX}",
        )
    if os.path.lexists(target) and not overwrite:
        raise BadOption(
            field="path",
            value=str(target),
            why="it exists",
            accepted=f"another path, or {replacing}",
        )
    return target


async def known_node(engine: Engine, proposal: Proposal) -> str | None:
    """The node that holds a proposal's very source already, if there is one."""
    try:
        node = await engine.twin(proposal.variant_id, proposal.text)
    except UnknownId:
        return None  # submitting will say so
    return node.id if node else None


async def attempt(engine: Engine, attempt_id: str) -> Attempt:
    """One proposal that did not become a node.

    Raises:
        UnknownId: there is none.
    """
    row(ATTEMPT, attempt_id)
    seen: set[str] = set()
    for capture in await engine.captures():
        for card in await engine.cards(capture.id):
            for variant in card.variants:
                if variant.id in seen:
                    continue
                seen.add(variant.id)
                for found in await engine.attempts(variant.id):
                    if found.id == attempt_id:
                        return found
    raise unknown(ATTEMPT, attempt_id)
