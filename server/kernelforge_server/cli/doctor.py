"""`kernelforge doctor`: what works on this machine."""

import platform

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import EngineStatus
from kernelforge_engine.machine import DEEDS
from kernelforge_server.cli.options import JsonOption, ProjectOption
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.sheet import Sheet
from kernelforge_server.cli.tables import GOOD, WARNED


def doctor(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Check which devices kernels can be written for, and what stands in the way."""
    session = Session(project=project, as_json=as_json)

    async def work(engine: Engine) -> EngineStatus:
        with session.progress("probing devices"):
            return await engine.status()

    status = session.run(work)
    if as_json:
        session.emit({**codec.dump(status), "python_version": platform.python_version()})
    else:
        session.show(
            f"Kernel Forge {status.version}, Python {platform.python_version()}, torch "
            f"{status.torch_version}, project {status.project}"
        )
        session.show(_devices(status))
        session.show(_isolation(status), style=WARNED if status.open else None)
    if not any(device.usable for device in status.devices):
        raise typer.Exit(1)


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
