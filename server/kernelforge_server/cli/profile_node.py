"""`kernelforge profile`: what holds a node back."""

from typing import Annotated

import typer

from kernelforge_engine.engine import Engine
from kernelforge_server.cli.options import JsonOption, ProjectOption
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.sheet import Sheet
from kernelforge_tools.profile_views import LaunchView, ProfileView
from kernelforge_tools.wording import number_text

SHOWN = 4
SAID_ELSEWHERE = {"kernel", "bottleneck"}


def profile(
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="A node, as `kernelforge tree` shows it.")
    ],
    refresh: Annotated[
        bool, typer.Option("--refresh", metavar="", help="Measure again, whatever is on record.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what holds a node back: counters, registers, spills, occupancy, distance to the floor."""
    session = Session(project=project, as_json=as_json)

    async def work(engine: Engine) -> ProfileView:
        with session.progress(node) as notice:
            found = await engine.profile(node, refresh=refresh, notice=notice)
        return ProfileView.of(await engine.node(node), found, None if as_json else SHOWN)

    view = session.run(work)
    if as_json:
        session.emit(view.model_dump(exclude_none=True))
    else:
        _show(session, view)


def _show(session: Session, view: ProfileView) -> None:
    session.show(f"{view.node_id} on {view.device}: {view.summary}")
    if len(view.launches) > 1:
        for launch in view.launches:
            session.show(f"  {launch.kernel} is {launch.bottleneck or 'not counted'}")
    session.show(_facts(view))
    if any(launch.registers_per_thread is not None for launch in view.launches):
        session.show(_launches(view.launches))
    if view.left_out:
        session.show(view.left_out, style="dim")
    session.show(f"{view.method} (binary {view.binary_sha256[:16]})", style="dim")
    for name, why in (view.not_measured or {}).items():
        session.show(f"not measured: {name}: {why}", style="dim")


def _facts(view: ProfileView) -> Sheet:
    """The roofline and the code."""
    made = Sheet("figure", ">value")
    for part in (view.roofline, view.code):
        for name, value in part.model_dump(exclude_none=True).items() if part else ():
            made.add_row(name, _text(value))
    return made


def _launches(launches: list[LaunchView]) -> Sheet:
    """A row for every figure, a column for every launch."""
    known = [launch.model_dump(exclude_none=True) for launch in launches]
    made = Sheet("figure", *(f">{launch.kernel}" for launch in launches))
    for name in LaunchView.model_fields:
        if name not in SAID_ELSEWHERE and any(name in figures for figures in known):
            made.add_row(name, *(_text(figures.get(name)) for figures in known))
    return made


def _text(value: object) -> str:
    """A figure as people read it; `-` where it was not measured."""
    if isinstance(value, dict):
        return " ".join(_text(part) for part in value.values())
    if isinstance(value, list):
        return ", ".join(_text(part) for part in value)
    if isinstance(value, float):
        return number_text(value)
    return "-" if value is None else str(value)
