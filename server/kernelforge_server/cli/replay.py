"""`kernelforge replay`: a project's nodes again, on another machine or another torch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.cast.summary import printable
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import NoProject
from kernelforge_engine.records import Timing
from kernelforge_engine.replaying import Again
from kernelforge_engine.replays import Replay, Replayed
from kernelforge_engine.store.database import NAME
from kernelforge_server import settings
from kernelforge_server.cli.cast_options import performed
from kernelforge_server.cli.options import JsonOption
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.sheet import Sheet
from kernelforge_server.cli.tables import GOOD, WARNED, interval
from kernelforge_tools.entries import absolute
from kernelforge_tools.wording import counted


def replay(
    project: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PROJECT]",
            help="A project folder, or the folder it is in. Default: $KERNELFORGE_PROJECT or "
            "./.kernelforge.",
            show_default=False,
        ),
    ] = None,
    attempts: Annotated[
        bool, typer.Option("--attempts", metavar="", help="Also what was not valid.")
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", metavar="", help="Begin anew, where an interrupted replay would go on."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compile, judge and time every node of a project again on this machine; its own record of them
    stays as it is."""
    bare = Session(project=None, as_json=as_json)
    session = Session(project=performed(bare, lambda: _folder(project)), as_json=as_json)

    async def work(engine: Engine) -> Replay:
        with session.progress("replay", steps=True) as notice:
            return await engine.replayer.run(Again(attempts=attempts, fresh=fresh), notice)

    found = session.run(work)
    if as_json:
        session.emit(_document(found))
    else:
        session.show(_sheet(found))
        for line in _remarks(found):
            session.show(line)
    if found.lost:
        raise typer.Exit(1)


def _folder(project: Path | None) -> Path:
    """The folder of a project that is there: a replay makes none.

    Raises:
        NoProject: there is none.
    """
    path = absolute(project) if project else settings.resolve().project
    for folder in (path, path / settings.PROJECT):
        if (folder / NAME).is_file():
            return folder
    raise NoProject(path=path)


def _document(found: Replay) -> dict[str, object]:
    rows = [{**codec.dump(r), "change": r.change, "lost": r.is_lost} for r in found.rows]
    return {
        **codec.dump(found),
        "rows": rows,
        "unsettled": list(found.unsettled),
        "lost": list(found.lost),
    }


def _sheet(found: Replay) -> Sheet:
    made = Sheet("node", "~operator", "<call", "-before", "-now", ">speed-up then",
                 ">speed-up now (99 %)", "!what changed")  # fmt: skip
    for row in found.rows:
        made.add_row(
            row.id,
            printable(row.operator),
            printable(row.variant),
            row.before,
            row.verdict.status if row.verdict else "-",
            _speedup(row.then),
            _speedup(row.now),
            printable(row.change) or "-",
            style=_style(row),
        )
    return made


def _speedup(timing: Timing | None) -> str:
    return interval(timing.speedup, timing.low, timing.high) if timing else "-"


def _style(row: Replayed) -> str | None:
    if row.is_lost:
        return WARNED
    return None if row.change else GOOD


def _remarks(found: Replay) -> Iterator[str]:
    devices = ", ".join(found.here.devices.values())
    changed = sum(bool(row.change) for row in found.rows)
    yield (
        f"{counted(len(found.rows), 'row')} on {devices}, torch {found.here.torch}: {changed} "
        f"changed, {len(found.lost)} not valid any more or not judged. This is replay {found.id} "
        "of the project; what its nodes had on record stays."
    )
    if found.resumed:
        yield f"{found.resumed} of them were found before it was interrupted (--fresh begins anew)."
    if found.unsettled:
        rows = counted(len(found.unsettled), "row")
        yield f"{rows} could not be judged or timed, for the reason shown."
