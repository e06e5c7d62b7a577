"""The tool that times a node."""

from mcp.server.mcpserver import Context

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Notice
from kernelforge_engine.records import Node, Outcome, Timing
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.views import TimingView
from kernelforge_tools.waiting import DEFAULT_WAIT_S, Wait, slow


class BenchmarkView(View):
    """The timing of one node."""

    node_id: str
    variant_id: str
    timing: TimingView


async def benchmark(
    ctx: Context[Engine], node_id: str, wait_s: Wait = DEFAULT_WAIT_S
) -> Answer[BenchmarkView]:
    """Time a valid node against eager, interleaved and under the same rules.

    The status is the outcome: faster (the lower end of the interval clears the margin, twice),
    slower, inconclusive (the summary says why), or implausible (below what the memory traffic
    allows: the measurement or the kernel is wrong). Times are microseconds per call; speedup is
    eager over candidate. Calling it again measures again; the newer timing is kept and backed up
    its revision tree.
    """

    async def work(engine: Engine, notice: Notice) -> Answer[BenchmarkView]:
        return timed(await engine.benchmark(node_id, notice))

    return await slow(ctx, "benchmark", {"node_id": node_id}, wait_s, work)


def timed(node: Node) -> Answer[BenchmarkView]:
    """The answer for a node that has just been timed."""
    if node.timing is None:
        return Answer(status="inconclusive", summary=f"{node.id} has no timing.", next=[])
    timing = TimingView.of(node.timing)
    return Answer(
        status=timing.outcome,
        summary=f"{node.id} is {timing.outcome}: {timing.speedup}x eager "
        f"({timing.low} to {timing.high}), {timing.candidate_us} us against {timing.eager_us} us"
        f"{_why(node.timing)}.",
        data=BenchmarkView(node_id=node.id, variant_id=node.variant_id, timing=timing),
        next=[
            call("mcts_select", variant_id=node.variant_id),
            *([call("export_cast", path="model.cast")] if timing.outcome == "faster" else []),
        ],
    )


def _why(timing: Timing) -> str:
    """What kept a comparison from a conclusion, as the end of a sentence."""
    why = timing.evidence.get("why")
    return f": {why}" if why and timing.outcome == Outcome.INCONCLUSIVE else ""
