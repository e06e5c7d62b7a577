"""`kernelforge evaluate`: judge and time candidates from files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import FileMissing, MeasurementFailed
from kernelforge_engine.exchanges import Notice, Proposal
from kernelforge_engine.records import Outcome, Status, Timing
from kernelforge_server.cli.options import JsonOption, ProjectOption, VariantOption
from kernelforge_server.cli.session import NOTHING_FASTER, Session
from kernelforge_server.cli.tables import GOOD, interval, microseconds


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What became of one file."""

    file: str
    status: Status
    reason: str
    node_id: str | None = None
    timing: Timing | None = None
    measured: bool = True

    @property
    def faster(self) -> bool:
        return self.timing is not None and self.timing.outcome == Outcome.FASTER

    def document(self) -> dict[str, object]:
        """The JSON line of the file."""
        names = ("outcome", "speedup", "low", "high", "eager_us", "candidate_us")
        timing = {name: getattr(self.timing, name) for name in names} if self.timing else None
        return {
            "file": self.file,
            "status": self.status,
            "reason": self.reason,
            "node_id": self.node_id,
            "timing": timing,
        }


def evaluate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Candidate files.")],
    variant: VariantOption,
    parent: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="The node they revise. Default: eager itself."),
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile, validate and time candidates for one variant; each is answered on its own."""
    session = Session(project=project, as_json=as_json)
    show = _show_json(session) if as_json else _show_line(session)

    async def work(engine: Engine) -> list[Evaluation]:
        proposals = [(file, _proposal(file, variant, parent)) for file in files]
        done = []
        for file, proposal in proposals:
            with session.progress(file.name) as notice:
                evaluation = await _evaluation(engine, str(file), proposal, notice)
            show(evaluation)
            done.append(evaluation)
        return done

    evaluations = session.run(work)
    if not any(e.faster for e in evaluations):
        raise typer.Exit(NOTHING_FASTER if all(e.measured for e in evaluations) else 1)


def _proposal(file: Path, variant_id: str, parent_id: str | None) -> Proposal:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileMissing(path=file) from error
    return Proposal(
        text=text, variant_id=variant_id, parent_id=parent_id, author="cli", note=file.name
    )


async def _evaluation(engine: Engine, file: str, proposal: Proposal, notice: Notice) -> Evaluation:
    submission = await engine.submit(proposal, notice)
    status, reason = submission.verdict.status, submission.verdict.reason
    if submission.node is None:
        return Evaluation(file=file, status=status, reason=reason)
    node_id = submission.node.id
    try:
        node = await engine.benchmark(node_id, notice)
    except MeasurementFailed as error:
        return Evaluation(
            file=file, status=status, reason=str(error), node_id=node_id, measured=False
        )
    return Evaluation(file=file, status=status, reason=reason, node_id=node_id, timing=node.timing)


def _show_json(session: Session) -> Callable[[Evaluation], None]:
    return lambda evaluation: session.emit(evaluation.document())


def _show_line(session: Session) -> Callable[[Evaluation], None]:
    def show(evaluation: Evaluation) -> None:
        line = f"{evaluation.file}: {evaluation.status}"
        if timing := evaluation.timing:
            line += (
                f", {timing.outcome}, {interval(timing.speedup, timing.low, timing.high)}, "
                f"{microseconds(timing.candidate_us)} against {microseconds(timing.eager_us)} "
                f"({evaluation.node_id})"
            )
        else:
            line += f". {evaluation.reason}"
        session.console.print(line, style=GOOD if evaluation.faster else None)

    return show
