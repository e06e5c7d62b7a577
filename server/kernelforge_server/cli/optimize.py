"""`kernelforge optimize`: try library kernels along the search."""

from statistics import median
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import OptimizeReport
from kernelforge_server.cli.options import CaptureOption, JsonOption, ProjectOption
from kernelforge_server.cli.session import NOTHING_FASTER, Session
from kernelforge_server.cli.tables import left_line, report_table
from kernelforge_tools.wording import counted

BudgetOption = Annotated[int, typer.Option(min=1, help="Proposals in all.")]
DEFAULT_BUDGET = 24


def optimize(
    budget: BudgetOption = DEFAULT_BUDGET,
    capture_id: CaptureOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Propose library kernels for a capture, validate and time them. No model writes anything."""
    session = Session(project=project, as_json=as_json)

    async def work(engine: Engine) -> OptimizeReport:
        with session.progress("optimize", steps=True) as notice:
            return await engine.optimize(capture_id, budget=budget, notice=notice)

    report = session.run(work)
    if as_json:
        session.emit(codec.dump(report))
    else:
        show_report(session, report)
    if not report.faster:
        raise typer.Exit(NOTHING_FASTER)


def show_report(session: Session, report: OptimizeReport) -> None:
    """The best of every variant, and what a run did."""
    session.show(report_table(report))
    if left := left_line(report):
        session.show(left, style="dim")
    session.show(report_line(report))


def report_line(report: OptimizeReport) -> str:
    """What a run did, in one line."""
    refused = ", ".join(f"{count} {status}" for status, count in report.refused.items())
    line = f"{counted(report.proposals, 'proposal')}: {report.valid} valid, "
    line += f"{report.faster} faster than eager"
    line += f", refused: {refused}." if refused else "."
    if report.verdict_seconds:
        line += (
            f" Compile, validate and benchmark: {median(report.verdict_seconds):.1f} s (median)."
        )
    return line
