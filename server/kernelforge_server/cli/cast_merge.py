"""`kernelforge cast merge`: several casts as one."""

from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.cast import report as reports
from kernelforge_engine.cast.manifest import read
from kernelforge_engine.cast.merging import Choice
from kernelforge_engine.cast.merging import merge as merged
from kernelforge_engine.cast.publish import save
from kernelforge_engine.cast.summary import printable
from kernelforge_server.cli.cast_options import (
    OutputOption,
    OverwriteOption,
    TrustedOption,
    existing,
    performed,
    trusted_keys,
)
from kernelforge_server.cli.cast_sheet import heading, kernels_sheet
from kernelforge_server.cli.options import JsonOption
from kernelforge_server.cli.session import Session
from kernelforge_tools.entries import absolute
from kernelforge_tools.lookups import cast_path


def merge(  # noqa: PLR0913  an option is an argument
    casts: Annotated[list[Path], typer.Argument(metavar="X.cast", help="Two or more, or one.")],
    output: OutputOption,
    prefer: Annotated[
        Path | None,
        typer.Option(metavar="A.cast", help="Whose kernel is kept where two serve one call."),
    ] = None,
    no_samples: Annotated[
        bool,
        typer.Option(
            "--no-samples",
            metavar="",
            help="Leave out values of the model's tensors, and its code.",
        ),
    ] = False,
    overwrite: OverwriteOption = False,
    key: TrustedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put the kernels of several casts into one; it is not signed.

    The same kernel built for several architectures becomes one with all its binaries.
    """
    session = Session(project=None, as_json=as_json)

    def work() -> tuple[Choice, ...]:
        target = cast_path(output, overwrite=overwrite, replacing="--overwrite")
        files = [read(existing(path), trusted_keys(key)) for path in casts]
        chosen = absolute(prefer) if prefer else None
        made = merged(files, prefer=chosen, samples=not no_samples)
        save(target, made.draft)
        return made.choices

    choices = performed(session, work)
    found = performed(session, lambda: reports.report(absolute(output)))
    if as_json:
        session.emit({**codec.dump(found), "choices": [codec.dump(c) for c in choices]})
        return
    session.show(heading(found))
    session.show(kernels_sheet(found))
    for choice in choices:
        session.show(_said(choice))


def _said(choice: Choice) -> str:
    return (
        f"{choice.operator} ({printable(choice.variant)}): kept {choice.kept} of "
        f"{choice.kept_of} over {choice.dropped} of {choice.dropped_of}: {choice.why}."
    )
