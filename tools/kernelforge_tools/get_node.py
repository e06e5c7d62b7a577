"""The tool that shows one node."""

from typing import Annotated, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.calls import Json
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Attempt
from kernelforge_engine.records import Node
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.lookups import ATTEMPT, attempt
from kernelforge_tools.profile_views import ProfileView
from kernelforge_tools.views import AttemptRow, NodeRow, VerdictDetail
from kernelforge_tools.wording import brief, meanings

MAX_SOURCE_CHARS = 12_000

Section = Literal["source", "verdict", "timing", "lineage", "profile"]


class NodeView(View):
    """A node, or an attempt."""

    node: NodeRow | None = None
    attempt: AttemptRow | None = None
    variant_id: str
    parent_id: str | None = None
    note: str | None = None
    """All of a note that the row shows the beginning of."""
    source: str | None = None
    left_out: str | None = None
    verdict: VerdictDetail | None = None
    timing_evidence: dict[str, Json] | None = None
    meaning: dict[str, str] | None = None
    """What the terms in the timing evidence stand for."""
    lineage: list[NodeRow] | None = None
    profile: ProfileView | None = None


async def get_node(
    ctx: Context[Engine],
    node_id: Annotated[str, Field(description="a node (n1) or an attempt (a1)")],
    sections: Annotated[
        tuple[Section, ...], Field(description="parts to add to the short form")
    ] = (),
    source_offset: Annotated[
        int, Field(ge=0, description="where to go on in a source that was cut")
    ] = 0,
) -> Answer[NodeView]:
    """Show a node of a revision tree: who wrote it, its note, visits and timing.

    Sections add to that: source (the candidate file), verdict (how it was validated), timing (how
    it was measured), lineage (its ancestors from eager down, with their timings and notes), profile
    (if profile_node made one). The id of an attempt (a1) is answered with its verdict, its whole
    log and its source.
    """
    engine = ctx.request_context.lifespan_context
    if node_id.startswith(ATTEMPT):
        return await _failed(engine, await attempt(engine, node_id), source_offset)
    node = await engine.node(node_id)
    timing = _evidence(node) if "timing" in sections else None
    text = await _source(engine, node) if "source" in sections else None
    source, rest = _part(node.id, text, source_offset)
    return Answer(
        status="ok",
        summary=f"{node.id} of {node.variant_id} ({node.label}): {_outcome(node)}.",
        data=NodeView(
            node=NodeRow.of(node),
            variant_id=node.variant_id,
            note=_whole(node.note),
            source=source,
            left_out=rest,
            verdict=_verdict(node) if "verdict" in sections else None,
            timing_evidence=timing,
            meaning=meanings(timing) if timing else None,
            lineage=await _lineage(engine, node) if "lineage" in sections else None,
            profile=await _profile(engine, node) if "profile" in sections else None,
        ),
        next=[
            call("mcts_select", variant_id=node.variant_id)
            if node.timing or node.source_digest is None
            else call("benchmark", node_id=node.id)
        ],
    )


async def whole_source(engine: Engine, node_id: str) -> str:
    """The candidate file of a node or an attempt, empty for eager itself.

    Raises:
        UnknownId
    """
    if node_id.startswith(ATTEMPT):
        return await engine.source((await attempt(engine, node_id)).source_digest)
    return await _source(engine, await engine.node(node_id)) or ""


def _whole(note: str) -> str | None:
    return note if brief(note) != (note or None) else None


def _part(node_id: str, text: str | None, offset: int) -> tuple[str | None, str | None]:
    """The part of a source that one answer holds, and how to get the next."""
    if text is None or (not offset and len(text) <= MAX_SOURCE_CHARS):
        return text, None
    end = offset + MAX_SOURCE_CHARS
    rest = call("get_node", node_id=node_id, sections=["source"], source_offset=end)
    where = f"characters {offset} to {min(end, len(text))} of {len(text)} of the source"
    return text[offset:end], where + (f"; {rest} for the next" if end < len(text) else "")


async def _failed(engine: Engine, found: Attempt, source_offset: int) -> Answer[NodeView]:
    text = await engine.source(found.source_digest)
    source, rest = _part(found.id, text, source_offset)
    under = {"variant_id": found.variant_id, "parent_id": found.parent_id}
    return Answer(
        status="ok",
        summary=f"{found.id} of {found.variant_id} is {found.verdict.status}: "
        f"{found.verdict.reason}",
        data=NodeView(
            attempt=AttemptRow.of(found),
            variant_id=found.variant_id,
            parent_id=found.parent_id,
            note=_whole(found.note),
            source=source,
            left_out=rest,
            verdict=VerdictDetail.of(found.verdict),
        ),
        next=[call("compile_and_validate", source="(mended)", **under)],
    )


def _outcome(node: Node) -> str:
    if node.timing:
        return f"{node.timing.outcome}, {node.timing.speedup:.4g}x eager"
    return "eager itself" if node.source_digest is None else "not timed yet"


async def _source(engine: Engine, node: Node) -> str | None:
    return await engine.source(node.source_digest) if node.source_digest else None


async def _profile(engine: Engine, node: Node) -> ProfileView | None:
    found = await engine.known_profile(node.id)
    return ProfileView.of(node, found) if found else None


def _verdict(node: Node) -> VerdictDetail | None:
    return VerdictDetail.of(node.verdict) if node.verdict else None


def _evidence(node: Node) -> dict[str, Json] | None:
    return {"scope": node.timing.scope, **node.timing.evidence} if node.timing else None


async def _lineage(engine: Engine, node: Node) -> list[NodeRow]:
    return [NodeRow.of(above) for above in await engine.line(node.id)]
