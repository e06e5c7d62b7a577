"""`kernelforge agent`: our own agent, on a server of its own or on one that runs."""

import secrets
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import anyio
import typer

from kernelforge_engine.errors import KernelForgeError
from kernelforge_server import settings
from kernelforge_server.cli import agent_options as given
from kernelforge_server.cli import agent_sessions
from kernelforge_server.cli.agent_options import Output
from kernelforge_server.cli.agent_screen import listener, show_plan, show_result
from kernelforge_server.cli.options import DeviceOption, ModelArgument, ProjectOption
from kernelforge_server.cli.plain import PlainCommand, PlainGroup
from kernelforge_tools.entries import absolute, model_name

if TYPE_CHECKING:
    from kernelforge_agent.budget import Budget
    from kernelforge_agent.job import Around, Job

DEFAULT_MODEL = "claude-opus-5"
DEFAULT_GOAL = "make the whole model faster than eager"
DEFAULT_TURNS = 80
DEFAULT_CAST = "model.cast"

agent = typer.Typer(
    cls=PlainGroup,
    no_args_is_help=True,
    help="Have a language model write kernels for a PyTorch model.",
    epilog="Exit codes: 0 something is faster, or fast enough, 2 not possible as written, "
    "3 nothing was faster, 4 a budget was used, 5 the model failed, 6 the server failed, "
    "130 and 143 stopped.",
)


@agent.command(cls=PlainCommand)
def run(  # noqa: PLR0913  one parameter for each option
    model: ModelArgument,
    goal: given.GoalOption = DEFAULT_GOAL,
    writer: given.ModelNameOption = DEFAULT_MODEL,
    base_url: given.BaseUrlOption = None,
    effort: given.EffortOption = None,
    device: DeviceOption = "cpu",
    card: given.CardsOption = None,
    cast: given.CastOption = DEFAULT_CAST,
    agents: given.AgentsOption = 1,
    max_cost_usd: given.DollarsOption = None,
    max_turns: given.TurnsOption = DEFAULT_TURNS,
    max_time: given.TimeOption = None,
    max_gpu_time: given.GpuTimeOption = None,
    max_candidates: given.CandidatesOption = None,
    stop_at_speedup: given.EnoughOption = None,
    arm: given.ArmOption = None,
    price: given.PriceOption = None,
    server: given.ServerOption = "",
    output_format: given.OutputOption = Output.TEXT,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Show what would be said; ask no model.")
    ] = False,
    project: ProjectOption = None,
) -> None:
    """Capture a model, write kernels for it, export those that are faster."""
    from kernelforge_agent.budget import Price
    from kernelforge_agent.job import Job, Task
    from kernelforge_agent.run import planned

    endpoint, _ = settings.chat_endpoint()
    try:
        dollars = given.prices(price)
        job = Job(
            task=Task(
                model=model_name(model),
                device=device,
                goal=goal,
                cards=tuple(card or ()),
                cast=str(absolute(cast)),
            ),
            model=_writer(writer),
            base_url=base_url or (endpoint if writer.startswith("openai:") else None),
            effort=effort,
            budget=_budget(
                max_cost_usd, max_turns, max_time, max_gpu_time, max_candidates, stop_at_speedup
            ),
            price=Price(per_million=dollars) if dollars else None,
            authors=agents,
            server=server,
            arm=arm,
        )
        around = _around(project, _new_session(), output_format)
    except KernelForgeError as error:
        agent_sessions.fail(output_format, error)
    if dry_run:
        show_plan(output_format, _performed(output_format, lambda: planned(job, around)))
        return
    _worked(job, around, output_format)


@agent.command(cls=PlainCommand)
def resume(  # noqa: PLR0913  one parameter for each option
    session: given.SessionArgument = "",
    max_cost_usd: given.DollarsOption = None,
    max_turns: given.TurnsOption = None,
    max_time: given.TimeOption = None,
    max_gpu_time: given.GpuTimeOption = None,
    max_candidates: given.CandidatesOption = None,
    stop_at_speedup: given.EnoughOption = None,
    output_format: given.OutputOption = Output.TEXT,
    project: ProjectOption = None,
) -> None:
    """Go on with a run that was stopped, where it stood; a budget given here replaces its own."""
    from kernelforge_agent.errors import AgentError

    try:
        budget = _budget(
            max_cost_usd, max_turns, max_time, max_gpu_time, max_candidates, stop_at_speedup
        )
        sessions = agent_sessions.sessions(project)
        around = _around(project, sessions.folder(session).name, output_format)
        job = sessions.job(session, budget)
    except (KernelForgeError, AgentError) as error:
        agent_sessions.fail(output_format, error)
    _worked(job, around, output_format)


@agent.command(cls=PlainCommand)
def fork(  # noqa: PLR0913  one parameter for each option
    session: given.SessionArgument = "",
    goal: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What is wanted now, in words.", show_default=False),
    ] = None,
    arm: given.ArmOption = None,
    max_cost_usd: given.DollarsOption = None,
    max_turns: given.TurnsOption = None,
    max_time: given.TimeOption = None,
    max_gpu_time: given.GpuTimeOption = None,
    max_candidates: given.CandidatesOption = None,
    stop_at_speedup: given.EnoughOption = None,
    output_format: given.OutputOption = Output.TEXT,
    project: ProjectOption = None,
) -> None:
    """Go on from what a run has said and found, as a run of its own with a budget of its own; the
    other stays as it is."""
    from kernelforge_agent.errors import AgentError
    from kernelforge_agent.fork import changed, forked

    try:
        budget = _budget(
            max_cost_usd, max_turns, max_time, max_gpu_time, max_candidates, stop_at_speedup
        )
        sessions = agent_sessions.sessions(project)
        job = changed(sessions.job(session, budget), goal, arm, budget)
        around = _around(project, _new_session(), output_format)
        forked(sessions, session, job, around.folder)
    except (KernelForgeError, AgentError) as error:
        agent_sessions.fail(output_format, error)
    _worked(job, around, output_format)


def _writer(name: str) -> str:
    kind, colon, path = name.partition(":")
    return f"scripted:{absolute(path)}" if kind == "scripted" and colon else name


def _budget(
    dollars: float | None,
    turns: int | None,
    time: str | None,
    gpu_time: str | None,
    candidates: int | None,
    enough: float | None,
) -> "Budget":
    from kernelforge_agent.budget import Budget

    return Budget(
        dollars=dollars,
        turns=turns,
        wall_s=given.seconds("max-time", time),
        gpu_s=given.seconds("max-gpu-time", gpu_time),
        candidates=candidates,
        enough=enough,
    )


def _new_session() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _around(project: Path | None, session: str, output: Output) -> "Around":
    from mcp import StdioServerParameters

    from kernelforge_agent.job import Around

    resolved = settings.resolve(project)
    return Around(
        folder=resolved.project / agent_sessions.FOLDER / session,
        child=StdioServerParameters(
            command=sys.executable,
            args=["-m", "kernelforge_server", "mcp", "--project", str(resolved.project)],
            env=dict(resolved.environment),
        ),
        token=settings.token(),
        key=settings.chat_endpoint()[1],
        listener=listener(output),
    )


def _worked(job: "Job", around: "Around", output: Output) -> NoReturn:
    from kernelforge_agent.run import run as worked

    result = _performed(output, lambda: worked(job, around))
    show_result(output, result.document)
    raise typer.Exit(result.exit_code)


def _performed(output: Output, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    from kernelforge_agent.errors import AgentError

    try:
        return anyio.run(work)
    except AgentError as error:
        agent_sessions.fail(output, error)


agent.command("list", cls=PlainCommand)(agent_sessions.listed)
agent.command("show", cls=PlainCommand)(agent_sessions.shown)
agent.command("transcript", cls=PlainCommand)(agent_sessions.transcript)
