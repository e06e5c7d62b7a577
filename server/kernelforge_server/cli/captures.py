"""`kernelforge captures`: what a project holds, and taking some of it out."""

import time
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Collected, Removed
from kernelforge_engine.records import Capture
from kernelforge_server.cli.options import JsonOption, ProjectOption
from kernelforge_server.cli.plain import PlainCommand, PlainGroup
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.sheet import Sheet
from kernelforge_server.cli.tables import byte_count, microseconds
from kernelforge_tools.wording import counted

AGES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))

captures = typer.Typer(
    cls=PlainGroup, invoke_without_command=True, help="List the captures, or remove some."
)


@captures.callback()
def listed(
    context: typer.Context, project: ProjectOption = None, as_json: JsonOption = False
) -> None:
    """List the captures of a project, newest first, or remove some."""
    if context.invoked_subcommand is not None:
        return
    session = Session(project=project, as_json=as_json)

    async def work(engine: Engine) -> tuple[tuple[Capture, ...], int]:
        return await engine.captures(), await engine.stored_bytes()

    found, stored = session.run(work)
    if as_json:
        session.emit({"captures": [codec.dump(c) for c in found], "stored_bytes": stored})
        return
    if found:
        session.show(_table(found, time.time()))
    session.show(f"{counted(len(found), 'capture')}; example tensors take {byte_count(stored)}.")


@captures.command(cls=PlainCommand)
def delete(
    capture_id: Annotated[str, typer.Argument(metavar="ID", help="A capture, as c1.")],
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Also the nodes that would go with it.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a capture, the variants that only it saw, and the tensors that nothing needs then."""
    session = Session(project=project, as_json=as_json)

    async def work(engine: Engine) -> Removed:
        return await engine.delete_capture(capture_id, force=force)

    removed = session.run(work)
    if as_json:
        session.emit(codec.dump(removed))
        return
    what = f"{counted(removed.variants, 'variant')} and {counted(removed.nodes, 'node')}"
    session.show(f"{removed.capture_id} is removed, with {what} that only it had.")
    session.show(_collected(removed.collected))


@captures.command(cls=PlainCommand)
def clean(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Remove example tensors that no capture names, as one that was killed leaves them."""
    session = Session(project=project, as_json=as_json)

    async def work(engine: Engine) -> Collected:
        return await engine.collect_blobs()

    collected = session.run(work)
    if as_json:
        session.emit(codec.dump(collected))
    else:
        session.show(_collected(collected))


def _collected(collected: Collected) -> str:
    if collected.running:
        running = f"{counted(collected.running, 'capture')} running"
        return f"No example tensors were removed: {running}. Run captures clean afterwards."
    files = f"{counted(collected.blobs, 'example tensor')} ({byte_count(collected.bytes)})"
    line = f"Removed {files} that nothing needs."
    if collected.young_bytes:
        young = byte_count(collected.young_bytes)
        line += f" {young} more stay for an hour, in case that a running capture finds them: then "
        line += "`kernelforge captures clean` removes them."
    return line


def _table(found: tuple[Capture, ...], now: float) -> Sheet:
    errors = ("!error",) if any(capture.error for capture in found) else ()
    made = Sheet("capture", "~model", "-device", "<inputs", ">age", ">calls", ">wall", "-bound",
                 ">size", *errors)  # fmt: skip
    for capture in found:
        cells = [
            capture.id,
            capture.model,
            capture.device,
            ", ".join(capture.inputs) or "-",
            _age(now - capture.created_at),
            str(capture.calls),
            microseconds(capture.wall_us),
            capture.believed_bound or "-",
            byte_count(capture.stored_bytes),
        ]
        made.add_row(*cells, *(capture.error or "" for _ in errors))
    return made


def _age(seconds: float) -> str:
    """How long ago, in the largest unit that is not zero."""
    whole = max(int(seconds), 0)
    unit, name = next(((unit, name) for unit, name in AGES if whole >= unit), AGES[-1])
    return f"{whole // unit} {name}"
