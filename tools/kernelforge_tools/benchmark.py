"""The tool that times a node."""

from mcp.server.mcpserver import Context

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Notice
from kernelforge_engine.records import WITHIN_MARGIN, Node, Outcome, Timing
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.load import is_busy
from kernelforge_tools.views import TimingView
from kernelforge_tools.waiting import DEFAULT_WAIT_S, Wait, slow
from kernelforge_tools.wording import number_text, rounded


class BenchmarkView(View):
    """The timing of one node."""

    node_id: str
    variant_id: str
    timing: TimingView
    dispatch_us: float | None = None
    """Of candidate_us: what the call costs before the kernel starts, which no kernel can save."""
    busy: str | None = None
    """Set when other work kept the machine busy."""


async def benchmark(
    ctx: Context[Engine], node_id: str, wait_s: Wait = DEFAULT_WAIT_S
) -> Answer[BenchmarkView]:
    """Time a valid node against eager, interleaved and under the same rules.

    The status is the outcome: faster (the lower end of the interval clears the margin, twice),
    slower, inconclusive (the summary says why), or implausible (below what the memory traffic
    allows: the measurement or the kernel is wrong). Times are microseconds per call; speedup is
    eager over candidate. Calling it again measures again; the newer timing counts, but for an
    inconclusive one that does not contradict an earlier win.
    """

    async def work(engine: Engine, notice: Notice) -> Answer[BenchmarkView]:
        return timed(await engine.benchmark(node_id, notice))

    return await slow(ctx, "benchmark", {"node_id": node_id}, wait_s, work)


def timed(node: Node) -> Answer[BenchmarkView]:
    """The answer for a node that has just been timed."""
    if node.timing is None:
        return Answer(status="inconclusive", summary=f"{node.id} has no timing.", next=[])
    timing, busy = TimingView.of(node.timing), _busy(node.timing)
    dispatch_us = _dispatch_us(node.timing)
    own = f" ({dispatch_us} us of it dispatch)" if dispatch_us else ""
    more = "".join(f" {said}" for said in (_again(node.timing), busy) if said)
    again = timing.outcome == Outcome.INCONCLUSIVE and not _is_settled(node.timing)
    return Answer(
        status=timing.outcome,
        summary=f"{node.id} is {timing.outcome}: {timing.speedup}x eager "
        f"({timing.low} to {timing.high}), {timing.candidate_us} us{own} against "
        f"{timing.eager_us} us{_why(node.timing)}.{more}",
        data=BenchmarkView(
            node_id=node.id,
            variant_id=node.variant_id,
            timing=timing,
            dispatch_us=dispatch_us,
            busy=busy,
        ),
        next=[
            *([call("benchmark", node_id=node.id)] if again else []),
            call("mcts_select", variant_id=node.variant_id),
            *([call("export_cast", path="model.cast")] if timing.outcome == "faster" else []),
        ],
    )


def _is_settled(timing: Timing) -> bool:
    """Whether it is known well that the node is no win: measuring again brings nothing."""
    return str(timing.evidence.get("why", "")).endswith(WITHIN_MARGIN)


def _dispatch_us(timing: Timing) -> float | None:
    found = timing.evidence.get("dispatch_us")
    return rounded(found) if isinstance(found, float) else None


def _busy(timing: Timing) -> str | None:
    """What to think of a time that was taken while others worked on the processors, where the call
    as a whole was timed."""
    machine = timing.evidence.get("machine")
    after = machine.get("after") if isinstance(machine, dict) else None
    if not isinstance(machine, dict) or not isinstance(after, dict):
        return None
    load, threads = after.get("load"), machine.get("threads")
    if not isinstance(load, float) or not isinstance(threads, int) or not is_busy(load, threads):
        return None
    return (
        f"The machine was busy (load {load} on {threads} threads): that slows eager more than a "
        "kernel on one thread. Compare no times of different runs, and measure again when calm."
    )


def _again(timing: Timing) -> str:
    """That a win stands although another benchmark found nothing."""
    found = timing.evidence.get("again")
    if not isinstance(found, dict):
        return ""
    return (
        "That is an earlier win, which stands: measured again it was inconclusive at "
        f"{number_text(float(str(found['speedup'])))}x ({found['why']})."
    )


def _why(timing: Timing) -> str:
    """What kept a comparison from a conclusion, as the end of a sentence."""
    why = timing.evidence.get("why")
    return f": {why}" if why and timing.outcome == Outcome.INCONCLUSIVE else ""
