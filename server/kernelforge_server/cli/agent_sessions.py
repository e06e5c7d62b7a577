"""`kernelforge agent list`, `show` and `transcript`: what earlier runs came to."""

import json
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from kernelforge_engine.cast.summary import printable
from kernelforge_engine.errors import KernelForgeError
from kernelforge_server import settings
from kernelforge_server.cli import agent_options as given
from kernelforge_server.cli.agent_options import Output
from kernelforge_server.cli.agent_screen import show_failure
from kernelforge_server.cli.agent_transcript import markdown
from kernelforge_server.cli.options import ProjectOption
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.sheet import Sheet

if TYPE_CHECKING:
    from kernelforge_agent.sessions import Overview, Sessions

T = TypeVar("T")

FOLDER = "agent"


class Format(StrEnum):
    """How a transcript is written."""

    MD = "md"
    JSONL = "jsonl"


FormatOption = Annotated[
    Format,
    typer.Option("--format", help="md, to be read, or jsonl: every record, with its author."),
]


def sessions(project: Path | None) -> "Sessions":
    """The sessions of a project."""
    from kernelforge_agent.sessions import Sessions

    return Sessions(settings.resolve(project).project / FOLDER)


def fail(output: Output, error: Any) -> NoReturn:
    """Say why something could not be done, and end with its exit code."""
    show_failure(output, str(error), error.exit_code)
    raise typer.Exit(error.exit_code)


def listed(output_format: given.OutputOption = Output.TEXT, project: ProjectOption = None) -> None:
    """List the runs of this project, the newest first."""
    found = _read(output_format, project, lambda all_: [all_.overview(name) for name in all_.names])
    if output_format is not Output.TEXT:
        _emit({"sessions": [_document(one) for one in found]})
    elif found:
        Session(project=project, as_json=False).show(_table(found))
    else:
        typer.echo("No agent was run in this project.")


def shown(
    session: given.SessionArgument = "",
    output_format: given.OutputOption = Output.TEXT,
    project: ProjectOption = None,
) -> None:
    """Show what a run was to do, how it stands, what it found and what that cost."""
    found = _read(output_format, project, lambda all_: all_.overview(session))
    if output_format is not Output.TEXT:
        _emit(_document(found))
        return
    for name, value in _lines(found):
        if value:
            typer.echo(f"{name + ':':<13}{_shown(value)}")


def transcript(
    session: given.SessionArgument = "",
    written: FormatOption = Format.MD,
    project: ProjectOption = None,
) -> None:
    """Print what was said and done in a run, one author after the other."""
    found = _read(Output.TEXT, project, lambda all_: all_.transcripts(session))
    for author, records in found.items():
        if written is Format.MD:
            typer.echo(_shown(markdown(author, records)))
        else:
            for record in records:
                _emit({"author": author, **record})


def _read(output: Output, project: Path | None, read: "Callable[[Sessions], T]") -> T:
    from kernelforge_agent.errors import AgentError

    try:
        return read(sessions(project))
    except (KernelForgeError, AgentError) as error:
        fail(output, error)


def _shown(text: str) -> str:
    """What a model or a tool said, as it may go to a terminal."""
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))


def _emit(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, ensure_ascii=False))


def _document(found: "Overview") -> dict[str, Any]:
    dollars = "unknown" if found.dollars is None else found.dollars
    return {**asdict(found), "dollars": dollars, "transcripts": str(found.transcripts)}


def _table(found: "list[Overview]") -> Sheet:
    made = Sheet("session", "-state", "~writer", "~model", ">turns", ">candidates", ">valid",
                 ">faster", ">dollars")  # fmt: skip
    for one in found:
        made.add_row(
            one.session,
            one.state,
            one.job.model,
            one.job.task.model,
            str(one.turns),
            str(one.candidates),
            str(one.valid),
            str(len(one.faster)),
            _dollars(one),
        )
    return made


def _lines(found: "Overview") -> list[tuple[str, str]]:
    job = found.job
    budget = {name: value for name, value in asdict(job.budget).items() if value is not None}
    faster = [f"{node} {one['speedup']}x" for node, one in found.faster.items()]
    return [
        ("session", found.session),
        ("state", found.state),
        ("forked from", found.forked_from),
        ("model", f"{job.task.model} on {job.task.device}"),
        ("goal", job.task.goal),
        ("cards", ", ".join(job.task.cards) or "all"),
        ("writer", job.model if job.authors == 1 else f"{job.model}, {job.authors} authors"),
        ("arm", job.arm or ""),
        ("budget", ", ".join(f"{name} {value:g}" for name, value in budget.items())),
        ("turns", str(found.turns)),
        ("candidates", f"{found.candidates}, {found.valid} valid"),
        ("faster", ", ".join(faster) or "none"),
        ("casts", ", ".join(found.casts)),
        ("tokens", ", ".join(f"{kind} {count}" for kind, count in found.tokens.items())),
        ("dollars", _dollars(found)),
        ("seconds", f"{found.wall_s:.1f}"),
        ("transcripts", str(found.transcripts)),
        ("report", found.report),
    ]


def _dollars(found: "Overview") -> str:
    return "unknown" if found.dollars is None else f"{found.dollars:.4g}"
