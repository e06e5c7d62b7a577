"""The tool by which clients say what they spent."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.usage import Report
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.caller import caller
from kernelforge_tools.spending import Dollars, SpendingView, in_dollars


class UsageView(View):
    """A report, and what the same node, attempt, card or project has come to."""

    usage_id: str
    counted: bool
    """False where this very report was on record already."""
    dollars: Dollars
    total: SpendingView


async def record_usage(  # noqa: PLR0913  what a client may say of its calls
    ctx: Context[Engine],
    key: Annotated[str, Field(description="yours for this report: repeated, it counts once")],
    model: Annotated[str, Field(description="the name its maker uses")],
    tokens: Annotated[
        dict[str, int],
        Field(description="input (not cached), output, cache_read, cache_write; none twice"),
    ],
    about: Annotated[
        str | None, Field(description="node n1, attempt a1 or card k1; default: the project")
    ] = None,
    calls: int = 1,
    dollars: Annotated[
        float | None, Field(description="where you know it; default: by the price table")
    ] = None,
    wall_s: float | None = None,
    arm: Annotated[str | None, Field(description="the arm of an experiment")] = None,
) -> Answer[UsageView]:
    """Report the tokens that a language model used for this project, after each call or in sums.

    Nothing here runs or sees a model: totals hold what is reported. get_status and
    get_card(sections=["usage"]) show them, with the seconds that devices worked and the cost of an
    accepted kernel. A model that the price table does not know costs `unknown`.
    """
    accounts = ctx.request_context.lifespan_context.accounts
    report = Report(
        key=key,
        reporter=caller(ctx),
        model=model,
        tokens=tokens,
        about=about,
        arm=arm,
        calls=calls,
        dollars=dollars,
        wall_seconds=wall_s,
    )
    usage_id, counted = await accounts.record(report)
    cost = in_dollars(accounts.dollars(report))
    total = SpendingView.of(await accounts.spending(about=about))
    return Answer(
        status="ok",
        summary=_summary(usage_id, report, cost, counted=counted),
        data=UsageView(usage_id=usage_id, counted=counted, dollars=cost, total=total),
        next=[call("get_status")],
    )


def _summary(usage_id: str, report: Report, cost: Dollars, *, counted: bool) -> str:
    if not counted:
        return f"{usage_id} is this very report: nothing was counted twice."
    price = "at an unknown price" if cost == "unknown" else f"${cost}"
    where = report.about or "the project"
    return f"{usage_id}: {sum(report.tokens.values())} tokens of {report.model}, {price}, {where}."
