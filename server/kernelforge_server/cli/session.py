"""How every command runs: one engine, progress on standard error, one way for errors to look."""

import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

import anyio
import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.exchanges import Notice
from kernelforge_engine.exchanges import Progress as Step
from kernelforge_server import settings

T = TypeVar("T")

NOTHING_FASTER = 3
INTERRUPTED = 130
PIPE_COLUMNS = 1000
STOPPED = "stopped; what was filed is kept"


@dataclass(frozen=True, kw_only=True)
class Session:
    """What a command works with: its project, and whether people or programs read its output."""

    project: Path | None
    as_json: bool

    def run(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        """Do `work` with the project's engine; an error of ours ends the command with its code."""
        try:
            return anyio.run(self._with_engine, work)
        except KernelForgeError as error:
            self.fail(error)
        except KeyboardInterrupt:
            self._say(STOPPED)
            raise typer.Exit(INTERRUPTED) from None

    async def _with_engine(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        # An error is carried out of the engine's context as a value: raised inside, its task group
        # would wrap it into an exception group.
        outcome: T | KernelForgeError
        async with Engine.open(settings.resolve(self.project)) as engine:
            try:
                outcome = await work(engine)
            except KernelForgeError as error:
                outcome = error
        if isinstance(outcome, KernelForgeError):
            raise outcome
        return outcome

    def fail(self, error: KernelForgeError) -> NoReturn:
        """Say what went wrong and what to do, and end with the error's exit code."""
        self._say(str(error))
        raise typer.Exit(error.exit_code)

    def _say(self, why: str) -> None:
        if self.as_json:
            self.emit({"error": why})
        else:
            typer.echo(f"kernelforge: {why}", err=True)

    def warn(self, why: str | None) -> None:
        """Print what a reader of the results must know, if there is something."""
        if why:
            self.show(f"Warning: {why}", style="yellow")

    def emit(self, document: object) -> None:
        """Print one JSON document on a line of its own."""
        typer.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))

    def show(self, what: RenderableType, style: str | None = None) -> None:
        """Print for people: tables as wide as the terminal or as they like in a pipe, and text that
        nothing breaks, so that it can be copied."""
        width = None if sys.stdout.isatty() else PIPE_COLUMNS
        console = Console(width=width, markup=False, highlight=False)
        console.print(what, style=style, soft_wrap=True)

    @contextmanager
    def progress(self, title: str, *, steps: bool = False) -> Iterator[Notice]:
        """A bar on standard error, if that is a terminal, that follows one piece of work; with
        `steps`, a line for every step of it if it is none."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}", style="dim"),
        )
        console = Console(stderr=True)
        plain = steps and not console.is_terminal
        with Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as bar:
            task = bar.add_task(title, total=None, text="")

            def notice(step: Step) -> None:
                bar.update(task, completed=step.done, total=step.total or None, text=step.text)
                if plain:
                    typer.echo(f"{title.strip()} {step.done}/{step.total}: {step.text}", err=True)

            yield notice
            if plain:
                typer.echo(f"{title.strip()}: done", err=True)
