"""What the commands about casts share."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from kernelforge_engine.cast.keys import FINGERPRINT
from kernelforge_engine.errors import FileMissing, KernelForgeError
from kernelforge_server.cli.session import Session
from kernelforge_tools.entries import absolute

T = TypeVar("T")

TrustedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="PUBLIC",
        help="Accept the cast only if this key signed it: a PEM file, or a fingerprint. May be "
        "repeated.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="OUT.cast", help="Where to write it.")
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", metavar="", help="Replace an existing file.")
]


def trusted_keys(key: list[str] | None) -> list[str | Path] | None:
    """Public keys as the engine takes them: a name that is no fingerprint is that of a file."""
    if key is None:
        return None
    return [each if FINGERPRINT.fullmatch(each.lower()) else absolute(each) for each in key]


def existing(path: Path) -> Path:
    """A path in full.

    Raises:
        FileMissing: there is nothing to be read.
    """
    found = absolute(path)
    try:
        there = found.exists()
    except OSError:  # it may not be looked at, or no file could have such a name
        there = False
    if not there:
        raise FileMissing(path=found)
    return found


def performed(session: Session, work: Callable[[], T]) -> T:
    """Do work that needs no project; an error of ours ends the command with its code."""
    try:
        return work()
    except KernelForgeError as error:
        session.fail(error)
