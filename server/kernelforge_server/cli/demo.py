"""`kernelforge demo`: everything once, on a bundled model."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import (
    CaptureRequest,
    CastSummary,
    MeasureRequest,
    OptimizeReport,
)
from kernelforge_engine.measurements import Check, Measurement
from kernelforge_engine.records import Capture, Card, Outcome
from kernelforge_server.cli.export import show_whole_model
from kernelforge_server.cli.measure import show_measurement
from kernelforge_server.cli.measurements import measurement_document
from kernelforge_server.cli.optimize import DEFAULT_BUDGET, BudgetOption, show_report
from kernelforge_server.cli.options import JsonOption
from kernelforge_server.cli.overview import show_outcome
from kernelforge_server.cli.session import NOTHING_FASTER, Session
from kernelforge_server.cli.tables import load_text
from kernelforge_tools.entries import absolute
from kernelforge_tools.load import busy_now

EXAMPLES = Path(__file__).parent.parent / "examples"
FOLDER = Path(".demo")


DemoProjectOption = Annotated[
    Path | None,
    typer.Option(
        "--project",
        metavar="DIR",
        help=f"Project folder. Default: ./{FOLDER}.",
        show_default=False,
    ),
]


class DemoDevice(StrEnum):
    """Where the demo runs."""

    CPU = "cpu"
    CUDA = "cuda"


EXAMPLE = {DemoDevice.CPU: "speech_detector.py", DemoDevice.CUDA: "vae_decoder.py"}


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Everything a demo run produced; `cast` and `measurement` exist if something was faster."""

    capture: Capture
    cards: tuple[Card, ...]
    report: OptimizeReport
    cast: CastSummary | None = None
    measurement: Measurement | None = None


def demo(
    device: Annotated[DemoDevice, typer.Option(help="Where the model runs.")] = DemoDevice.CPU,
    budget: BudgetOption = DEFAULT_BUDGET,
    project: DemoProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Capture a bundled model, optimize it, export a cast and measure the model with it."""
    folder = absolute(project or FOLDER)
    session = Session(project=folder, as_json=as_json)
    file = EXAMPLES / EXAMPLE[device]
    busy = busy_now() if device == DemoDevice.CPU else None
    if not as_json:
        session.show(f"Model: {file}\nProject: {folder}")

    async def work(engine: Engine) -> Demo:
        return await _demo(engine, session, file, device, budget)

    done = session.run(work)
    if as_json:
        session.emit(_document(done))
    else:
        _show(session, done, busy)
    if not done.report.faster:
        raise typer.Exit(NOTHING_FASTER)


async def _demo(engine: Engine, session: Session, file: Path, device: str, budget: int) -> Demo:
    with session.progress("capture ", steps=True) as notice:
        capture = await engine.capture(
            CaptureRequest(model=f"{file}:make_model", device=device), notice
        )
    cards = await engine.cards(capture.id)
    with session.progress("optimize", steps=True) as notice:
        report = await engine.optimize(capture.id, budget=budget, notice=notice)
    if not report.faster:
        return Demo(capture=capture, cards=cards, report=report)
    path = absolute(session.project or FOLDER) / f"{file.stem}.cast"
    winners = [row.node_id for row in report.rows if row.outcome == Outcome.FASTER]
    with session.progress("export  ", steps=True) as notice:
        cast = await engine.export(
            path,
            node_ids=tuple(node for node in winners if node),
            overwrite=True,
            check=Check(),
            notice=notice,
        )
    with session.progress("measure ", steps=True) as notice:
        measurement = await engine.measure(
            MeasureRequest(model=f"{file}:make_model", cast=path, device=device), notice
        )
    return Demo(capture=capture, cards=cards, report=report, cast=cast, measurement=measurement)


def _document(done: Demo) -> dict[str, object]:
    return {
        "capture": codec.dump(done.capture),
        "report": codec.dump(done.report),
        "cast": codec.dump(done.cast) if done.cast else None,
        "measurement": measurement_document(done.measurement) if done.measurement else None,
    }


def _show(session: Session, done: Demo, busy: str | None) -> None:
    show_outcome(session, done.capture, done.cards, busy)
    show_report(session, done.report)
    if done.cast is None or done.measurement is None:
        session.show("Nothing was faster than eager on this machine, so nothing was exported.")
        return
    show_whole_model(session, done.cast)
    show_measurement(session, done.measurement, style="dim")
    session.show(f"\nCast: {done.cast.path}\nTo use it:\n\n{load_text(done.cast)}")
