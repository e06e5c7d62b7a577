"""`kernelforge doctor`: what works on this machine."""

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from kernelforge_engine import codec
from kernelforge_engine.builder.tools import Tool, tools
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import EngineStatus
from kernelforge_engine.machine import DEEDS
from kernelforge_server import settings
from kernelforge_server.cli.options import JsonOption, ProjectOption
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.sheet import Sheet
from kernelforge_server.cli.tables import GOOD, WARNED
from kernelforge_server.clients import CLIENTS, configured


def doctor(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Check devices, compilers, isolation and clients, and say what to do about each finding."""
    session = Session(project=project, as_json=as_json)

    async def work(engine: Engine) -> EngineStatus:
        with session.progress("probing devices"):
            return await engine.status()

    status = session.run(work)
    has_gpu = any(device.usable for device in status.devices if device.backend == "cuda")
    found = tools(settings.resolve(project).environment, cuda=has_gpu)
    told = configured(Path.cwd(), Path.home())
    if as_json:
        session.emit(
            {
                **codec.dump(status),
                "python_version": platform.python_version(),
                "tools": [codec.dump(tool) for tool in found],
                "clients": {name: str(path) for name, path in told.items()},
            }
        )
    else:
        session.show(
            f"Kernel Forge {status.version}, Python {platform.python_version()}, torch "
            f"{status.torch_version}, project {status.project}"
        )
        session.show(_devices(status))
        session.show(_tools(found))
        session.show(_isolation(status), style=WARNED if status.open else None)
        session.show(_clients(told))
    if not any(device.usable for device in status.devices):
        raise typer.Exit(1)


def _tools(found: Sequence[Tool]) -> Sheet:
    made = Sheet("tool", "~found", "!for")
    for tool in found:
        lack = "" if tool.place else f": {tool.step}"
        made.add_row(
            tool.name,
            tool.place or "no",
            f"{tool.used_for}{lack}",
            style=None if tool.place else WARNED,
        )
    return made


def _clients(told: Mapping[str, Path]) -> str:
    if not told:
        names = ", ".join(CLIENTS)
        return f"no MCP client is told of the server here: kernelforge install CLIENT ({names})"
    return "MCP clients: " + ", ".join(f"{name} in {path}" for name, path in told.items())


def _isolation(status: EngineStatus) -> str:
    what = " and ".join(DEEDS[door] for door in status.open)
    said = f"could still {what}" if what else f"cannot {', '.join(DEEDS.values())}"
    return f"isolation {status.isolation}: a candidate {said}"


def _devices(status: EngineStatus) -> Sheet:
    made = Sheet("backend", "~device", "usable", "!detail")
    for device in status.devices:
        made.add_row(
            device.backend,
            device.name,
            "yes" if device.usable else "no",
            device.detail,
            style=GOOD if device.usable else None,
        )
    return made
