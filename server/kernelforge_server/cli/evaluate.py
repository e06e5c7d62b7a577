"""`kernelforge evaluate`: judge and time candidates from files."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.calls import Json
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import FileMissing, MeasurementFailed
from kernelforge_engine.evidence import Bundle
from kernelforge_engine.exchanges import Notice, Proposal
from kernelforge_engine.records import Outcome, Status, Tier, Timing
from kernelforge_server.cli.options import JsonOption, ProjectOption, TierOption, VariantOption
from kernelforge_server.cli.session import NOTHING_FASTER, Session
from kernelforge_server.cli.tables import GOOD, interval, microseconds
from kernelforge_tools.lookups import known_node
from kernelforge_tools.wording import evidence_text, meanings, shortened


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What became of one file."""

    file: str
    status: Status
    reason: str
    log: str = ""
    evidence: dict[str, Json] = field(default_factory=dict)
    node_id: str | None = None
    known: bool = False
    timing: Timing | None = None
    bundle: Bundle | None = None
    measured: bool = True

    @property
    def faster(self) -> bool:
        return self.timing is not None and self.timing.outcome == Outcome.FASTER

    def document(self) -> dict[str, object]:
        """The JSON line of the file; `log` is there when a compiler or a crash left one."""
        names = ("outcome", "speedup", "low", "high", "eager_us", "candidate_us")
        timing = {name: getattr(self.timing, name) for name in names} if self.timing else None
        document: dict[str, object] = {
            "file": self.file,
            "status": self.status,
            "reason": self.reason,
            "node_id": self.node_id,
            "timing": timing,
        }
        if self.bundle:
            document["bundle"] = codec.dump(self.bundle)
        return {**document, "log": self.log} if self.log else document


def evaluate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Candidate files.")],
    variant: VariantOption,
    parent: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="The node they revise. Default: eager itself."),
    ] = None,
    tier: TierOption = "full",
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile, validate and time candidates for one variant; each is answered on its own."""
    session = Session(project=project, as_json=as_json)
    show = _show_json(session) if as_json else _show_line(session)

    async def work(engine: Engine) -> list[Evaluation]:
        proposals = [(file, _proposal(file, variant, parent, tier)) for file in files]
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


def _proposal(file: Path, variant_id: str, parent_id: str | None, tier: Tier) -> Proposal:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileMissing(path=file) from error
    return Proposal(
        text=text,
        variant_id=variant_id,
        parent_id=parent_id,
        author="cli",
        note=file.name,
        tier=tier,
    )


async def _evaluation(engine: Engine, file: str, proposal: Proposal, notice: Notice) -> Evaluation:
    known = await known_node(engine, proposal)
    submission = await engine.submit(proposal, notice)
    verdict, node = submission.verdict, submission.node
    found = Evaluation(
        file=file,
        status=verdict.status,
        reason=verdict.reason,
        log=verdict.log,
        evidence=verdict.evidence,
        node_id=node.id if node else None,
        known=known is not None,
    )
    if node is None:
        return found
    try:
        found = replace(found, timing=(await engine.benchmark(node.id, notice)).timing)
    except MeasurementFailed as error:
        return replace(found, reason=str(error), measured=False)
    promoted = proposal.tier == "promotion"
    return replace(found, bundle=await engine.bundle(node.id)) if promoted else found


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
        if evaluation.known:
            line += f". This very source was node {evaluation.node_id} already"
        session.show(line, style=GOOD if evaluation.faster else None)
        for detail in _details(evaluation):
            session.show(detail, style="dim")
        if evaluation.bundle:
            session.emit(codec.dump(evaluation.bundle))

    return show


def _details(evaluation: Evaluation) -> list[str]:
    """What the author of a candidate that is not valid wants to know."""
    if evaluation.status == Status.VALID:
        return []
    log = shortened(evaluation.log, "--json")
    facts = evidence_text(evaluation.evidence)
    terms = [f"{name}: {text}" for name, text in meanings(evaluation.evidence).items()]
    lines = [*(log.splitlines() if log else []), *([f"evidence: {facts}"] if facts else []), *terms]
    return [f"  {line}" for line in lines]
