"""The tool that packs winners."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Notice
from kernelforge_engine.measurements import Check, WholeModel
from kernelforge_tools.answer import Answer, call
from kernelforge_tools.cast_views import CastView
from kernelforge_tools.lookups import cast_path
from kernelforge_tools.waiting import DEFAULT_WAIT_S, Wait, slow
from kernelforge_tools.wording import counted, kept_text, outcome, rounded


async def export_cast(  # noqa: PLR0913  what an agent may say about a cast
    ctx: Context[Engine],
    path: Annotated[str, Field(description="ending in .cast")],
    node_ids: Annotated[
        tuple[str, ...], Field(description="default: the fastest node of every variant")
    ] = (),
    overwrite: bool = False,
    measure: bool = True,
    keep_all: bool = False,
    samples: bool = True,
    wait_s: Wait = DEFAULT_WAIT_S,
) -> Answer[CastView]:
    """Write the nodes that are faster than eager into a .cast package.

    Loaded (`load` in the answer), it runs a kernel only for calls its evidence covers and leaves
    the rest to eager. First the captured model is timed without each kernel: those it is slower
    with are dropped, unless keep_all; measure=false leaves that unknown. A file is replaced only
    with overwrite=true. samples=false leaves out values of the model's tensors, and its code, by
    which another machine judges the kernels again.
    """
    target = cast_path(path, overwrite=True, replacing="overwrite=true")
    check = Check(keep_all=keep_all) if measure else None

    async def work(engine: Engine, notice: Notice) -> Answer[CastView]:
        # Not before: the file may be there because this very call wrote it, and was not heard.
        cast_path(path, overwrite=overwrite, replacing="overwrite=true")
        cast = await engine.export(
            target,
            node_ids=node_ids,
            overwrite=overwrite,
            samples=samples,
            check=check,
            notice=notice,
        )
        return Answer(
            status="ok",
            summary=f"{cast.path} holds {counted(len(cast.entries), 'kernel')} ({cast.bytes} "
            f"bytes). {_whole(cast.whole_model)}{kept_text(cast.kept)}",
            data=CastView.of(cast),
            next=[call("measure_model", path=cast.path)],
        )

    arguments = {
        "path": str(target),
        "node_ids": list(node_ids),
        "overwrite": overwrite,
        "measure": measure,
        "keep_all": keep_all,
        "samples": samples,
    }
    return await slow(ctx, "export_cast", arguments, wait_s, work)


def _whole(whole: WholeModel | None) -> str:
    """What an export found about the model, dropped and slowing kernels first."""
    if whole is None:
        return "The whole model was not measured with it."
    loud = "KEPT ALTHOUGH THE MODEL IS SLOWER WITH IT"
    said = [f"{loud}: {n}, {w}." for n, w in whole.slowing.items()]
    said += [f"Dropped, the model is slower with it: {n}, {w}." for n, w in whole.dropped.items()]
    said += [f"Kept without being measured: {n}: {w}." for n, w in whole.unknown.items()]
    if whole.speedup is None or whole.low is None or whole.high is None:
        return " ".join([*said, f"The model was not compared: {whole.uncompared}."])
    figures = f"{rounded(whole.speedup)}x ({rounded(whole.low)} to {rounded(whole.high)})"
    found = outcome(whole.low, whole.high)
    return " ".join([*said, f"The model with it: {found}, {figures} of its own speed."])
