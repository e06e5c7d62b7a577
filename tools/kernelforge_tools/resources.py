"""What a client may attach or read by address: the same answers as the tools give, whole."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import KernelForgeError, UnknownId
from kernelforge_tools import guide
from kernelforge_tools.answer import Answer, plain
from kernelforge_tools.get_card import get_card
from kernelforge_tools.get_node import get_node, whole_source
from kernelforge_tools.get_status import status_answer
from kernelforge_tools.get_tree import get_tree

T = TypeVar("T")

JSON, MARKDOWN, TEXT = "application/json", "text/markdown", "text/plain"
SCHEME = "kernelforge://"
MOST_NODES = 100


def add_resources(server: MCPServer[Engine], engine: Callable[[], Engine]) -> None:
    """Register every resource and template; `engine` gives the running one to a resource without
    parameters, which the SDK hands no context."""

    async def environment() -> str:
        """Devices, isolation, captures and jobs."""
        return await _told(status_answer(engine()))

    for uri, kind, function in (
        (f"{SCHEME}guide", MARKDOWN, the_guide),
        (f"{SCHEME}cards/{{card_id}}", JSON, card),
        (f"{SCHEME}nodes/{{node_id}}/source", TEXT, node_source),
        (f"{SCHEME}nodes/{{node_id}}/verdict", JSON, node_verdict),
        (f"{SCHEME}nodes/{{node_id}}/timing", JSON, node_timing),
        (f"{SCHEME}nodes/{{node_id}}/lineage", JSON, node_lineage),
        (f"{SCHEME}nodes/{{node_id}}/profile", JSON, node_profile),
        (f"{SCHEME}variants/{{variant_id}}/tree", JSON, tree),
        (f"{SCHEME}jobs/{{job_id}}/log", TEXT, job_log),
    ):
        server.resource(uri, mime_type=kind)(function)
    # Listed after the guide, which costs nothing to read: this one may have to start the Judge.
    server.resource(f"{SCHEME}environment", mime_type=JSON)(environment)


async def the_guide() -> str:
    """The loop from a model to a cast, and the format of a candidate."""
    return guide.TEXT


async def card(ctx: Context[Engine], card_id: str) -> str:
    """An operator or a region: its variants, its header and code to begin from."""
    return await _told(get_card(ctx, card_id, sections=("skeleton", "reference")))


async def node_source(ctx: Context[Engine], node_id: str) -> str:
    """The candidate file of a node, or of an attempt."""
    return await _found(whole_source(ctx.request_context.lifespan_context, node_id))


async def node_verdict(ctx: Context[Engine], node_id: str) -> str:
    """What a node was judged on, or what is wrong with an attempt and its whole log."""
    return await _told(get_node(ctx, node_id, sections=("verdict",)))


async def node_timing(ctx: Context[Engine], node_id: str) -> str:
    """How a node was timed against eager."""
    return await _told(get_node(ctx, node_id, sections=("timing",)))


async def node_lineage(ctx: Context[Engine], node_id: str) -> str:
    """The ancestors of a node from eager down."""
    return await _told(get_node(ctx, node_id, sections=("lineage",)))


async def node_profile(ctx: Context[Engine], node_id: str) -> str:
    """What held a node back when it was last profiled; without data where it never was."""
    return await _told(get_node(ctx, node_id, sections=("profile",)))


async def tree(ctx: Context[Engine], variant_id: str) -> str:
    """What was tried for a variant."""
    return await _told(get_tree(ctx, variant_id, limit=MOST_NODES))


async def job_log(ctx: Context[Engine], job_id: str) -> str:
    """Where a job stands, or how it ended."""
    job = await _found(ctx.request_context.lifespan_context.jobs.get(job_id))
    redact = ctx.request_context.lifespan_context.redact
    lines = [f"{job.id} {job.kind}: {job.state}"]
    if job.progress:
        lines.append(f"{job.progress.done}/{job.progress.total} {job.progress.text}")
    return redact("\n".join([*lines, *([job.error] if job.error else [])]))


async def _told(answer: Awaitable[Answer[Any]]) -> str:
    return json.dumps(plain(await _found(answer)), ensure_ascii=False)


async def _found(work: Awaitable[T]) -> T:
    """What `work` gives, its errors in the words of a resource."""
    try:
        return await work
    except UnknownId as error:
        raise ResourceNotFoundError(str(error)) from error
    except KernelForgeError as error:
        raise ResourceError(str(error)) from error
