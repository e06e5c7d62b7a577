"""The tool that packs winners."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Notice
from kernelforge_tools.answer import Answer, call
from kernelforge_tools.cast_views import CastView
from kernelforge_tools.lookups import cast_path
from kernelforge_tools.waiting import DEFAULT_WAIT_S, Wait, slow
from kernelforge_tools.wording import counted


async def export_cast(
    ctx: Context[Engine],
    path: Annotated[str, Field(description="where to write the package, ending in .cast")],
    node_ids: Annotated[
        tuple[str, ...], Field(description="default: the fastest node of every variant")
    ] = (),
    overwrite: bool = False,
    wait_s: Wait = DEFAULT_WAIT_S,
) -> Answer[CastView]:
    """Write the nodes that are faster than eager into a .cast package.

    The package holds sources, binaries, guards and the evidence of every kernel. Loaded, it runs a
    kernel only for calls its evidence covers and leaves everything else to eager. `load` in the
    answer is the code that enables it. An existing file is replaced only with overwrite=true.
    """
    target = cast_path(path, overwrite=overwrite, replacing="overwrite=true")

    async def work(engine: Engine, _: Notice) -> Answer[CastView]:
        cast = CastView.of(await engine.export(target, node_ids=node_ids, overwrite=overwrite))
        return Answer(
            status="ok",
            summary=f"{cast.path} holds {counted(len(cast.entries), 'kernel')} ({cast.bytes} "
            "bytes). A person can time the whole model with it by `kernelforge measure`.",
            data=cast,
            next=[call("list_cards")],
        )

    arguments = {"path": str(target), "node_ids": list(node_ids), "overwrite": overwrite}
    return await slow(ctx, "export_cast", arguments, wait_s, work)
